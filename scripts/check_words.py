#!/usr/bin/env python3
"""Checks comments and strings for wording that readers have to decode (CONTRIBUTING.md, "Words").

usage: check_words.py [ROOT]    the root of a checkout (default: this one)
"""

import pathlib
import re
import subprocess
import sys

PATTERNS = ["*.h", "*.cpp", "*.cu", "*.cuh", "*.py", "*.js"]
COMMENTS = re.compile(r"(?:^[ \t]*(?://+|#)[^\n]*\n?)+|(?://+|(?<=\s)#)[^\n]*|/\*.*?\*/",
                      re.MULTILINE | re.DOTALL)
STRINGS = re.compile(r'(?:"(?:\\.|[^"\\\n])*"\s*)+')
# How a comment must not begin -> what to write.
OPENINGS = {
    r"Of (the|those|all|a|an|each|several|two|its)\b": "begin with the subject",
    r"The same\b": "name what is the same",
    r"Whether\b": '"Returns whether ..." or "True if ..."',
    r"(So|As) (many|much|long|often|far)\b": "give the number or the limit",
    r"(Nothing|None|Nobody)\b": '"empty = ...", "nullopt if ..."',
    r"(Where|Wherever)\b": '"If ..." or "When ..."',
}
# What neither comments nor strings may contain -> what to write.
PHRASES = {
    r"\b(nobody|whoever|somebody)\b": "the caller, process, rank or thread",
    r"\b[Ss]o (many|much|often)\b": '"up to N", "number of"',
    r"\b(is|are|be|was|were) (to be )?had\b": '"is available", "found"',
    r"\b(is|are) none\b": '"is empty", "not found"',
    r"\bthere is no such\b": '"not found"',
    r"\bis there already\b": '"already exists"',
    r"\b(hears?|heard) (of|from)\b": '"receives"',
    r"\bas far as there (is|are)\b": '"up to"',
    r"\bcome to (be|have|an end)\b": '"become", "get", "end"',
    r"\bone that is no\b": '"is not a"',
}


def wrong_words(text):
    """(offset, words, what to write) for each finding in the text of a file."""
    for found in COMMENTS.finditer(text):
        words = re.sub(r"(?m)^[ \t]*(//+|#|/?\*+)<?[ \t]?", "", found[0]).strip("/ \t\n#")
        for opening, better in OPENINGS.items():
            if match := re.match(opening, words):
                yield found.start(), match[0], better
        yield from phrases(found)
    for found in STRINGS.finditer(text):
        yield from phrases(found)


def phrases(found):
    for phrase, better in PHRASES.items():
        for match in re.finditer(phrase, found[0]):
            yield found.start() + match.start(), match[0], better


def problems(root: pathlib.Path):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
               "--"]
    listed = subprocess.run(command + PATTERNS, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if name == "scripts/check_words.py":
            continue
        text = (root / name).read_text()
        for offset, words, better in wrong_words(text):
            yield f"{name}:{text.count(chr(10), 0, offset) + 1}: '{words}': write {better}"


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    found = list(problems(root.resolve()))
    print("\n".join(found) or "all words are plain")
    sys.exit(bool(found))
