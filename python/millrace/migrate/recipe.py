"""Reads a recipe and all files that it inherits from into one tree of values. No code is run."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from millrace._command import Failure
from millrace.migrate.errors import Place, RecipeError, TooLargeError
from millrace.migrate.literals import literal_of, read_assignments
from millrace.migrate.values import Budget, Value, merged, with_path

LARGEST_FILE = 128 << 10  # bytes
MOST_FILES = 100
LONGEST_CHAIN = 20  # number of files that inherit from each other

_COMMAND_LINE = Place("command line")


@dataclass
class Recipe:
    """The values of a recipe's files."""

    tree: Value
    # Names assigned at the top level of a file and not used by any other line, such as a
    # `train_pipeline` that was changed but is not used by the data set.
    unused: list[tuple[str, Value]] = field(default_factory=list)


def read_yaml_recipe(file: Path, overrides: Sequence[str]) -> Recipe:
    """Reads detectron2's YAML: `_BASE_` names the base file or files, relative to this file; dicts
    merge, other values replace. `overrides`: KEY VALUE ..., as at the end of detectron2's command
    lines. Raises RecipeError naming file and line; Failure for a file that cannot be read."""
    if len(overrides) % 2:
        raise RecipeError(f"override '{overrides[-1]}' has no value; expected KEY VALUE pairs")
    files = _Files()
    tree = _read_yaml(_normal(file), files, None)
    for key, text in zip(overrides[::2], overrides[1::2]):
        tree = with_path(tree, key, _given(text, files.budget))
    return Recipe(tree)


def read_python_recipe(file: Path, overrides: Sequence[str]) -> Recipe:
    """Reads MMDetection's Python files, 2.x and 3.x: `_base_` names the base files; dicts merge,
    unless the inheriting one has `_delete_=True`, other values replace; `_base_.a.b` is a value of
    the base files, also as the target of an assignment. `overrides`: key=value, as in
    --cfg-options. Raises the same errors as read_yaml_recipe."""
    files = _Files()
    recipe = _PythonFile(_normal(file), files).read(None)
    for word in overrides:
        key, sign, text = word.partition("=")
        if not key or not sign:
            raise RecipeError(f"override '{word}' is invalid; expected key=value")
        recipe.tree = with_path(recipe.tree, key, _given(text, files.budget))
    return recipe


def _given(text: str, budget: Budget) -> Value:
    if text in ("false", "true"):
        return Value(text == "true", _COMMAND_LINE)
    found = literal_of(text, _COMMAND_LINE, budget)
    return Value(text, _COMMAND_LINE) if found is None else found


def _normal(file: Path) -> Path:
    return Path(os.path.normpath(file))


class _Files:
    """Opens the files of one recipe, and tracks which file inherits from which."""

    def __init__(self) -> None:
        self.budget = Budget()
        self._open: list[Path] = []
        self._count = 0

    def enter(self, file: Path, asked_by: Place | None) -> str:
        """Returns the text of a file. `asked_by` is the location of the line that inherits from
        it."""
        where = f"{asked_by.text()}: the base " if asked_by else ""
        self._count += 1
        if file in self._open:
            raise RecipeError(f"{where}{file} inherits from itself")
        if len(self._open) >= LONGEST_CHAIN:
            raise TooLargeError(
                f"{where}{file}: chain of more than {LONGEST_CHAIN} inherited files"
            )
        if self._count > MOST_FILES:
            raise TooLargeError(f"{where}{file}: more than {MOST_FILES} files in one recipe")
        if where and not file.exists():
            raise RecipeError(f"{where}{file} not found")
        self._open.append(file)
        return _text_of(file)

    def leave(self) -> None:
        self._open.pop()


def _text_of(file: Path) -> str:
    """Reads a regular file; a pipe could block and a device never ends."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise Failure(f"{file}: cannot be opened: {problem.strerror}") from None
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise RecipeError(f"{file}: not a regular file")
    with open(opened, "rb") as stream:
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise TooLargeError.at(
            Place(str(file), 1), f"more than {LARGEST_FILE >> 10} KiB"
        )
    return data.decode("utf-8-sig", errors="replace")


def _bases_of(named: Value, file: Path) -> list[Path]:
    """Returns the paths of the base files that a file names."""
    bases = []
    for one in named.items if isinstance(named.data, tuple) else (named,):
        if not isinstance(one.data, str):
            raise RecipeError.at(one.place, f"a base must be a file name, not {one.type_name}")
        if "://" in one.data or "::" in one.data:
            raise RecipeError.at(
                one.place,
                f"base '{one.data}' is not a local file; download it, and name the file",
            )
        if "\0" in one.data:
            raise RecipeError.at(one.place, "the name of a base contains a zero byte")
        bases.append(_normal(file.parent / one.data))
    return bases


def _read_yaml(file: Path, files: _Files, asked_by: Place | None) -> Value:
    from millrace.migrate.yaml_text import parse_yaml  # needs PyYAML

    own = parse_yaml(files.enter(file, asked_by), str(file), files.budget)
    tree = Value({}, own.place)
    base = own.members.get("_BASE_")
    if base is not None:
        for below in _bases_of(base, file):
            tree = merged(tree, _read_yaml(below, files, base.place))
    files.leave()
    upper = {key: value for key, value in own.members.items() if key != "_BASE_"}
    return merged(tree, Value(upper, own.place))


class _PythonFile:
    """One Python file, read on top of its bases."""

    def __init__(self, file: Path, files: _Files) -> None:
        self._file = file
        self._files = files
        self._top = Place(str(file), 1)
        self._below = Recipe(Value({}, self._top))
        self._own: dict[str, Value] = {}
        self._used: set[str] = set()

    def read(self, asked_by: Place | None) -> Recipe:
        text = self._files.enter(self._file, asked_by)
        statements = read_assignments(text, str(self._file), self._named, self._files.budget)
        for one in statements:
            self._take(one.target, one.value)
        self._files.leave()
        unused = [] if "_base_" in self._used else self._below.unused
        unused += [(name, one) for name, one in self._own.items() if name not in self._used]
        return Recipe(merged(self._below.tree, Value(self._own, self._top)), unused)

    def _named(self, name: str) -> Value | None:
        self._used.add(name)
        return self._below.tree if name == "_base_" else self._own.get(name)

    def _take(self, target: list[str], value: Value) -> None:
        name, *below = target
        if name == "_base_" and below:
            self._below.tree = with_path(self._below.tree, ".".join(below), value)
        elif name == "_base_":
            for file in _bases_of(value, self._file):
                base = _PythonFile(file, self._files).read(value.place)
                self._below.tree = merged(self._below.tree, base.tree)
                self._below.unused += base.unused
        elif below:
            present = self._own.get(name, Value({}, value.place))
            self._own[name] = with_path(present, ".".join(below), value)
        else:
            self._own[name] = value
