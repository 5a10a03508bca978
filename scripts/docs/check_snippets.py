#!/usr/bin/env python3
"""Checks the snippets of the Markdown pages against the program.

usage: check_snippets.py TRAINER [ROOT]

TOML must parse, and `trainer config` must accept it; a partial file inherits a recipe, or the
file that a comment names (pages.py). In each line and code span that calls `trainer`, the command,
its options and the keys of --set must exist. So must targets of make, scripts, and options named
in code spans. Python and shell must parse, and docs/index.md must list every page of docs/.
tests/docs compiles the C++ and follows the tutorials.
"""

import ast
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator

from pages import IN_CODE, LINK, ROOT, Snippet, prose, snippets, tracked
from reference import commands_of, registry_of

# Pages that mention former options and files.
HISTORY = ("CHANGELOG.md", "docs/decisions/")
# Pages that mention options and files of other code bases, or of older versions.
FOREIGN = ("docs/migrating.md", "docs/install.md")
# Files that a partial configuration may inherit; one of them must accept it.
RECIPES = ["configs/maskrcnn.toml", "configs/coco/mask_rcnn_R50_FPN_1x.toml", ""]
PLUGIN_TABLES = {"callbacks.announce_best", "callbacks.draw_loss"}  # from examples and tutorials
PLUGIN_KEYS = {"model.head.box_loss"}
FILES = re.compile(r"\.(safetensors|onnx|json|jsonl|html|csv|md|so|cpp|h|py|toml|txt|pub|key|svg"
                   r"|data|yaml)$")
DOTTED = re.compile(r"([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)+)(?: = .*)?")
TABLE = re.compile(r"\[{1,2}((?:data|model|train|optimizer|schedule|callbacks)"
                   r"(?:\.[a-z0-9_]+)*)\]{1,2}")
OPERATORS = re.compile(r"[|&;<>()]+")


class Program:
    """The commands, options and keys of a built trainer."""

    def __init__(self, trainer: str) -> None:
        self.trainer = trainer
        self.help = commands_of(trainer)
        registry = registry_of(trainer)
        self.keys = {"plugins", "base", "unset"}
        anyone = []  # keys of every callback
        for table in registry["tables"]:
            name = table["name"].strip("[]")
            names = [option["name"] for option in table["options"]]
            if name == "callbacks.NAME":
                anyone = names
            self.keys |= {f"{name}.{key}" if name else key for key in names}
        for kind, where in (("detectors", "model"), ("stages", "data.stages"),
                            ("sources", "data.sources")):
            for entry in registry[kind]:
                self.keys |= {f"{where}.{option['name']}" for option in entry["options"]}
        self.callbacks = set()
        for entry in registry["callbacks"]:
            self.callbacks.add(entry["name"])
            names = [*anyone, *(option["name"] for option in entry["options"])]
            self.keys |= {f"callbacks.{entry['name']}.{key}" for key in names}
        # Pages often omit the first word of keys in [model]'s tables and in callbacks.
        self.short = {key.partition(".")[2] for key in self.keys
                      if key.startswith(("model.", "callbacks.")) and key.count(".") > 1}
        self.heads = {key.partition(".")[0] for key in self.keys | self.short if "." in key}

    def knows(self, key: str) -> bool:
        """Returns True if the key or table exists."""
        return any(one == key or one.startswith(key + ".")
                   for names in (self.keys, self.short) for one in names)

    def refusal(self, config: pathlib.Path) -> str:
        """Returns the error of `trainer config` for a file; empty if it accepts the file."""
        ended = subprocess.run([self.trainer, "config", str(config)], capture_output=True,
                               text=True, cwd=config.parent)
        error = ended.stderr.strip().removeprefix("trainer: error: ")
        return error if ended.returncode else ""


def toml_problems(program: Program, root: pathlib.Path, snippet: Snippet) -> Iterator[str]:
    try:
        table = tomllib.loads(snippet.text)
    except tomllib.TOMLDecodeError as error:
        yield str(error)
        return
    if snippet.how == "file":
        return
    text = snippet.text
    if snippet.how == "stages":
        around = ['[[data.stages]]\ntype = "' + name + '"\n'
                  for name in ("read", "decode", "group_by_aspect_ratio", "pad")]
        text = "".join([*around[:2], text, *around[2:]])
    bases = RECIPES if "base" not in table else [""]
    if snippet.how == "base":
        bases = [snippet.rest]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("configs", "examples"):
            if (root / name).is_dir():
                (pathlib.Path(folder) / name).symlink_to(root / name)
        config = pathlib.Path(folder) / "snippet.toml"
        refused = []
        for base in bases:
            config.write_text((f'base = "{base}"\n' if base else "") + text, encoding="utf-8")
            refused.append(program.refusal(config).replace(folder + os.sep, ""))
            if not refused[-1]:
                return
        yield refused[0]


def words_of(line: str) -> list[str]:
    """Returns the words after `trainer` in a line that calls it, up to the next command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    for place, word in enumerate(words):
        if word == "trainer" or word.endswith("/trainer"):
            rest = words[place + 1:]
            ends = [i for i, one in enumerate(rest) if OPERATORS.fullmatch(one)]
            return rest[:ends[0]] if ends else rest
    return []


def command_problems(program: Program, root: pathlib.Path, line: str) -> Iterator[str]:
    if re.match(r"make( |$)", line):
        targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(), re.MULTILINE))
        for word in line.split("#")[0].split()[1:]:
            if re.fullmatch("[a-z-]+", word) and word not in targets:
                yield f"make: unknown target '{word}'"
    for name in re.findall(r"(?<![\w./(])(?:scripts|configs|examples|tests)/[\w./-]*\w", line):
        if not (root / name).exists():
            yield f"{name} does not exist"
    words = words_of(line)
    if not words or "..." in words[:1]:
        return
    command = ""
    while words and f"{command} {words[0]}".strip() in program.help:
        command = f"{command} {words.pop(0)}".strip()
    if not command and words and not words[0].startswith("-"):
        if not line.startswith("trainer "):
            return  # a sentence about the program
        yield f"trainer: unknown command '{words[0]}'"
        return
    text = program.help[command] + program.help[""]
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        if not re.fullmatch("--[a-z][a-z-]*", option):
            continue
        if not re.search(rf"(?<![\w-]){option}(?![\w-])", text):
            yield f"trainer {command}: unknown option {option}"
        if option == "--set":
            setting = value if equals else "".join(words[place + 1:place + 2])
            key, has_value, _ = setting.partition("=")
            if has_value and not program.knows(key) and key not in {"K", *PLUGIN_KEYS}:
                yield f"--set {key}: unknown key"


def syntax_problems(snippet: Snippet) -> Iterator[str]:
    if snippet.language == "python":
        try:
            ast.parse(snippet.text)
        except SyntaxError as error:
            yield f"line {error.lineno} of the snippet: {error.msg}"
    elif snippet.language == "sh":
        ended = subprocess.run(["bash", "-n"], input=snippet.text, capture_output=True, text=True)
        if ended.returncode:
            yield ended.stderr.strip()


def shell_lines(snippet: Snippet) -> Iterator[tuple[int, str]]:
    """Yields commands with their line numbers; lines that end in `\\` are joined."""
    lines = snippet.text.splitlines()
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        while line.endswith("\\") and number + 1 < len(lines):
            number += 1
            line = line[:-1] + lines[number].strip()
        number += 1
        yield start, line.strip().removeprefix("$ ")


def prose_problems(program: Program, root: pathlib.Path, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(prose(text).splitlines(), 1):
        for span in IN_CODE.findall(line):
            span = span.strip()
            if span.startswith(("trainer ", "make ", "scripts/", "configs/")):
                yield from ((number, one) for one in command_problems(program, root, span))
            table = TABLE.fullmatch(span)
            dotted = DOTTED.fullmatch(span)
            if table and not program.knows(table[1]) and table[1] not in PLUGIN_TABLES:
                yield number, f"unknown table [{table[1]}]"
            elif (dotted and dotted[1].partition(".")[0] in program.heads
                  and not FILES.search(dotted[1]) and not program.knows(dotted[1])
                  and not dotted[1].startswith("backbone.body.")):  # the name of a tensor
                yield number, f"unknown option {dotted[1]}"


def problems(program: Program, root: pathlib.Path, page: pathlib.Path) -> Iterator[str]:
    for snippet in snippets(root, page):
        if snippet.how == "no":
            continue
        if snippet.language == "toml":
            for one in toml_problems(program, root, snippet):
                yield f"{snippet.place}: {one}"
        for one in syntax_problems(snippet):
            yield f"{snippet.place}: {one}"
        if snippet.language in ("", "sh", "console") and snippet.how != "output":
            for line, text in shell_lines(snippet):
                for one in command_problems(program, root, text):
                    if str(page).startswith(FOREIGN) and one.endswith(" does not exist"):
                        continue  # a file of another code base
                    yield f"{page}:{snippet.line + line + bool(snippet.language)}: {one}"
    if not str(page).startswith(FOREIGN):
        text = (root / page).read_text(encoding="utf-8")
        for line, one in prose_problems(program, root, text):
            yield f"{page}:{line}: {one}"


def unlisted(root: pathlib.Path, pages: list[pathlib.Path]) -> Iterator[str]:
    index = pathlib.Path("docs/index.md")
    if index not in pages:
        return
    # A folder of pages has a README.md that lists them.
    links = {os.path.normpath(page.parent / match["to"].partition("#")[0])
             for page in pages if page == index or page.match("docs/*/README.md")
             for match in LINK.finditer((root / page).read_text(encoding="utf-8"))}
    for page in pages:
        if page.parts[0] == "docs" and page != index and str(page) not in links:
            yield f"{page}:1: not listed in docs/index.md"


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(sys.argv[2]).absolute() if len(sys.argv) > 2 else ROOT
    program = Program(str(pathlib.Path(sys.argv[1]).absolute()))
    pages = [page for page in tracked(root, "*.md") if not str(page).startswith(HISTORY)]
    found = [one for page in pages for one in problems(program, root, page)]
    found += unlisted(root, pages)
    print("\n".join(found) or f"{len(pages)} pages; all snippets match the program")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
