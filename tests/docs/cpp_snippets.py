#!/usr/bin/env python3
"""Collects the C++ snippets of the Markdown pages in one source file.

usage: cpp_snippets.py ROOT OUT.cpp WHOLE.cpp

Snippets that are whole files are written to WHOLE.cpp as printed. Each other snippet is put into a
namespace of its own after `using namespace millrace`; all files of a tutorial share one namespace.
Comments before snippets specify what else they need (scripts/docs/pages.py).
tests/install/header_examples.py checks the public headers in docs/plugins.md.
"""

import pathlib
import re
import sys

root, out, out_whole = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(root / "scripts/docs"))
from pages import snippets, tracked  # noqa: E402

INCLUDE = re.compile(r"^#(?:include|pragma) .*\n", re.MULTILINE)
pages = tracked(root, "*.md")
files: dict[tuple[str, str], str] = {}  # contents of each tutorial's files, by page and part
bodies = []
includes: list[str] = []
whole_files = ""

for page in pages:
    for snippet in snippets(root, page):
        if snippet.language != "cpp" or snippet.how == "no" or snippet.part == "Public headers":
            continue
        if snippet.how == "whole":
            whole_files += f'#line {snippet.line + 1} "{page}"\n{snippet.text}'
            continue
        text, before = snippet.text, snippet.rest + "\n"
        includes += re.findall(r"^#include (<.*>)$", before + text, re.MULTILINE)
        text, before = INCLUDE.sub("", text), INCLUDE.sub("", before)
        line = f'#line {snippet.line + 1} "{page}"\n'
        if snippet.how == "file":
            tutorial = str(page), snippet.part
            files[tutorial] = files.get(tutorial, "") + line + text
        elif snippet.how == "inside":
            bodies.append(f"void snippet() {{\n{before}{line}{text}}}\n")
        elif snippet.how in ("", "after"):
            bodies.append(f"{before if snippet.how else ''}{line}{text}")
        else:
            sys.exit(f"{snippet.place}: '{snippet.how}' is not a check for C++")

whole = "".join(f"#include {one}\n" for one in dict.fromkeys(includes))
for number, body in enumerate([*bodies, *files.values()]):
    name = f"page_snippet_{number}"
    whole += f"\nnamespace {name} {{\nusing namespace millrace;\n{body}}}  // {name}\n"
out.write_text(whole)
out_whole.write_text(whole_files)
