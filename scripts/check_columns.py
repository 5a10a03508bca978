#!/usr/bin/env python3
"""Checks that no line of code or comment is longer than 100 columns. Unlike clang-format, it also
checks CMake, Python, and C++ lines that clang-format cannot break. Raw strings in C++ are data and
may be longer.

usage: check_columns.py [ROOT]    the root of a checkout (default: this one)
"""

import pathlib
import re
import subprocess
import sys

COLUMNS = 100
PATTERNS = ["*.h", "*.cpp", "*.cu", "*.cuh", "*.cmake", "CMakeLists.txt", "*.py"]
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)


def problems(root: pathlib.Path):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard",
               "--"]
    listed = subprocess.run(command + PATTERNS, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        text = RAW_STRING.sub(lambda raw: "\n" * raw[0].count("\n"), (root / name).read_text())
        for number, line in enumerate(text.splitlines(), 1):
            if len(line) > COLUMNS:
                yield f"{name}:{number}: {len(line)} columns; the limit is {COLUMNS}"


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent
    found = list(problems(root.resolve()))
    print("\n".join(found) or f"no line is longer than {COLUMNS} columns")
    sys.exit(bool(found))
