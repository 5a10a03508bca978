#!/usr/bin/env python3
"""Checks the Markdown pages: the file of every relative link must exist, and the heading if the
link contains one.

usage: check_links.py [FOLDER]    check all pages below FOLDER (default: those of this repository)
"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(page: pathlib.Path) -> set:
    """Returns the anchors of the page's headings, as GitHub makes them."""
    headings = HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text(),
                                      flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def problems(page: pathlib.Path):
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{page}: {link}: file not found"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            yield f"{page}: {link}: heading not found"


def pages_of_repository() -> list:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [pathlib.Path(page) for page in filter(None, listed.split("\0"))]


if __name__ == "__main__":
    below = pathlib.Path(sys.argv[1]).rglob("*.md") if len(sys.argv) > 1 else None
    pages = list(below or pages_of_repository())
    found = [problem for page in pages for problem in problems(page)]
    print("\n".join(found) or f"{len(pages)} pages; all links are valid")
    sys.exit(bool(found))
