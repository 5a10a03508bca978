"""Runs `trainer` to check whether a configuration is valid and which values are defaults."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from millrace._command import trainer
from millrace._runs import read_toml
from millrace.migrate.errors import RecipeError
from millrace.migrate.toml import Setting, to_toml
from millrace.migrate.values import number_of

TABLES = ("data", "model", "train", "optimizer", "schedule", "callbacks")  # in our order


def checked(tree: dict[str, Setting]) -> dict[str, Setting]:
    """Removes the values that equal the defaults. Raises RecipeError if `trainer run` would reject
    the configuration."""
    usual = {"model": Setting({"type": tree["model"].table()["type"]})}
    with tempfile.TemporaryDirectory() as folder:
        texts = {"given": to_toml(_in_order(tree)), "usual": to_toml(usual)}
        programs = {}
        for name, text in texts.items():
            file = Path(folder, f"{name}.toml")
            file.write_text(text, encoding="utf-8", errors="replace")
            programs[name] = subprocess.Popen(
                [trainer(), "config", str(file)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
            )
        resolved = {}
        for name, program in programs.items():
            out, err = program.communicate()
            if program.returncode != 0:
                file = Path(folder, f"{name}.toml")
                raise RecipeError(_with_origin(err, str(file), texts[name]))
            resolved[name] = _parsed(out)
    return _without_defaults(_in_order(tree), resolved["given"], resolved["usual"], "")


def _in_order(tree: dict[str, Setting]) -> dict[str, Setting]:
    """Sorts the tables in the order of our configurations."""
    return {name: tree[name] for name in TABLES if name in tree}


def _with_origin(message: str, file: str, text: str) -> str:
    """In an error message of the program, replaces the location in our text by the location in the
    recipe."""
    lines = text.splitlines()

    def origin(found: re.Match[str]) -> str:
        return lines[int(found[1]) - 1].rpartition("  # ")[2]

    said = message.strip().removeprefix("trainer: error: ")
    return re.sub(re.escape(file) + r":(\d+)(:\d+)?", origin, said)


def _parsed(text: str) -> dict[str, Any]:
    """Returns the resolved configuration, including derived values, which are comments in the
    text."""
    return read_toml(re.sub(r"(?m)^# (?=[\w-]+ = )", "", text))


def _without_defaults(
    table: dict[str, Setting], given: Any, usual: Any, path: str
) -> dict[str, Setting]:
    kept = {}
    for key, one in table.items():
        with_it = given.get(key) if isinstance(given, dict) else None
        without = usual.get(key) if isinstance(usual, dict) else None
        if isinstance(one.data, dict):
            below = _without_defaults(one.data, with_it, without, f"{path}{key}.")
            if below:
                kept[key] = Setting(below, one.origin)
        elif with_it is None or path + key == "model.type" or not _alike(with_it, without):
            kept[key] = one
    return kept


def _alike(a: Any, b: Any) -> bool:
    """Returns whether two values of an option are equivalent, such as 1 and 1.0, or 0.5 and
    [0.5]."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    if isinstance(a, list) or isinstance(b, list):
        many, one = (a, b) if isinstance(a, list) else (b, a)
        return len(many) == 1 and _alike(many[0], one)
    x, y = number_of(a), number_of(b)
    if x is not None and y is not None:
        return x == y
    return type(a) is type(b) and bool(a == b)
