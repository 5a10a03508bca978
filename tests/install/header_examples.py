#!/usr/bin/env python3
"""Writes the examples for public headers in docs/plugins.md to one source file.

usage: header_examples.py ROOT OUT.cpp

Fails if the page and cmake/public_headers.cmake list different headers, or if an example includes a
header that is not public.
"""

import pathlib
import re
import sys

root, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
page = (root / "docs/plugins.md").read_text().partition("\n## Public headers\n")[2]
listed = (root / "cmake/public_headers.cmake").read_text()
public = re.findall(r"^  (millrace/\S+\.h)$", listed, re.M)
shown = re.findall(r"^\*\*\[(millrace/\S+\.h)\]", page, re.M)
examples = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)

if sorted(shown) != sorted(public):
    sys.exit(f"docs/plugins.md: {set(public) ^ set(shown)} must be in both the page and "
             "cmake/public_headers.cmake")
if len(examples) != len(shown):
    sys.exit(f"docs/plugins.md: {len(shown)} headers but {len(examples)} examples")

includes, bodies = [], []
for header, example in zip(shown, examples):
    named = re.findall(r"^#include <(.+)>$", example, re.M)
    private = [one for one in named if one.startswith("millrace/") and one not in public]
    if named[0] != header or private:
        sys.exit(f"docs/plugins.md: the example of {header} includes {named}")
    includes += named
    bodies.append(re.sub(r"^#include .*\n", "", example, flags=re.M).strip())

text = "".join(f"#include <{one}>\n" for one in dict.fromkeys(includes))
for number, body in enumerate(bodies):
    text += f"\nnamespace example_{number} {{\nusing namespace millrace;\n{body}\n}}\n"
out.write_text(text)
