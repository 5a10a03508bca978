#!/usr/bin/env python3
"""Adapts the links of installed pages to the installation: relink_pages.py PREFIX

In the repository, all files have one root. Installed headers, examples and pages have different
roots. A link to a file that is not installed is replaced by its text.
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
