#!/usr/bin/env python3
"""Draws comments, messages, test names and option docs for a reader who has never seen the project.

usage: sample_words.py SEED [ROOT]    the same seed gives the same sample of a checkout
"""

import json
import pathlib
import random
import re
import subprocess
import sys

COMMENTS, MESSAGES, TEST_NAMES, OPTIONS = 150, 70, 80, 60
COMMENT = re.compile(r"(?:^[ \t]*//[^\n]*\n)+", re.MULTILINE)
LITERALS = r'(?:"(?:\\.|[^"\\\n])*"\s*)+'
SPEAKERS = r"(?:throw \w+(?:::\w+)*|\blog_\w+|\bfail|\breject|\berror|\bwarn\w*|fmt::format)"
MESSAGE = re.compile(rf"{SPEAKERS}[({{]\s*({LITERALS})")
TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST)\(\s*(\w+),\s*(\w+)\)", re.MULTILINE)
PYTHON_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)


def files(root: pathlib.Path, *patterns: str):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--", *patterns],
                            check=True, capture_output=True, text=True).stdout
    for name in sorted(filter(None, listed.split("\0"))):
        yield name, (root / name).read_text()


def at(name: str, text: str, offset: int) -> str:
    return f"{name}:{text.count(chr(10), 0, offset) + 1}"


def comments(root: pathlib.Path):
    """Each comment with the line of code below it."""
    for name, text in files(root, "*.h", "*.cpp", "*.cu", "*.cuh"):
        for found in COMMENT.finditer(text):
            below = text[found.end():].split("\n", 1)[0]
            yield f"{at(name, text, found.start())}\n{found[0]}{below}"


def messages(root: pathlib.Path):
    """The literals with which an error, a warning or a log line begins: at least four words."""
    for name, text in files(root, "*.h", "*.cpp"):
        if name.startswith("tests/"):
            continue
        for found in MESSAGE.finditer(text):
            words = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', found[1]))
            if len(re.findall(r"[a-z]{2,}", words)) >= 4:
                yield f"{at(name, text, found.start())}\n{words}"


def test_names(root: pathlib.Path):
    for _, text in files(root, "tests/*.cpp"):
        yield from (f"{suite}.{name}" for suite, name in TEST.findall(text))
    for _, text in files(root, "tests/*.py", "python/*.py"):
        yield from PYTHON_TEST.findall(text)


def option_docs(root: pathlib.Path):
    """The documentation of each option of the configuration."""
    def walk(node, path):
        if isinstance(node, dict):
            if isinstance(node.get("description"), str) and path:
                yield f"{path}: {node['description']}"
            for key, child in node.items():
                named = key not in ("properties", "items", "oneOf", "anyOf", "allOf", "if",
                                     "then", "else", "$defs", "definitions")
                yield from walk(child, f"{path}.{key}".strip(".") if named else path)
        elif isinstance(node, list):
            for child in node:
                yield from walk(child, path)
    schema = json.loads((root / "schema/millrace.schema.json").read_text())
    places = {}  # many tables share an option: each text is drawn once
    for place in walk(schema, ""):
        places.setdefault(place.split(": ", 1)[1], place)
    yield from sorted(places.values())


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else pathlib.Path(__file__).parent.parent
    draw = random.Random(int(sys.argv[1]))
    kinds = [("comments", comments, COMMENTS), ("messages", messages, MESSAGES),
             ("test names", test_names, TEST_NAMES), ("option docs", option_docs, OPTIONS)]
    for title, drawn_from, size in kinds:
        found = list(drawn_from(root))
        print(f"# {title}: {size} of {len(found)}\n")
        for number, entry in enumerate(draw.sample(found, size), 1):
            print(f"{number}. {entry}\n")
