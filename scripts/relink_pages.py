#!/usr/bin/env python3
"""Makes the links of installed pages lead to where things are installed: relink_pages.py PREFIX

In the repository a page finds its neighbours under one root; installed headers, examples and pages
have roots of their own. A link to what is not installed becomes its text.
"""

import os
import pathlib
import re
import sys

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")


def relink(page: pathlib.Path, root: pathlib.Path, elsewhere: list) -> None:
    def installed(match: re.Match) -> str:
        text, path, anchor = match[1], match[2], match[3] or ""
        target = pathlib.Path(os.path.normpath(page.parent / path))
        if target.exists():
            return match[0]
        name = target.relative_to(root)
        for place in elsewhere:
            if (place / name).exists():
                return f"[{text}]({os.path.relpath(place / name, page.parent)}{anchor})"
        return text

    text = page.read_text(encoding="utf-8")
    relinked = LINK.sub(installed, text)
    if relinked != text:
        page.write_text(relinked, encoding="utf-8")


if __name__ == "__main__":
    prefix = pathlib.Path(sys.argv[1]).absolute()
    pages_root = prefix / "share/doc/millrace"
    for page in pages_root.rglob("*.md"):
        relink(page, pages_root, [prefix / "include/millrace", prefix / "share/millrace"])
