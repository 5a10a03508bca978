"""Translates a recipe into a Millrace configuration, and records which values have been read and
which have no counterpart. Values that no rule reads are listed, so that no value is dropped
silently.

A table of rules is a list of functions that take the translation and the path of a part; `copy`,
`expect`, `ignore` etc. create rules that need no arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from millrace.migrate.errors import Place, RecipeError
from millrace.migrate.toml import Data, Scalar, Setting, at_path, set_path
from millrace.migrate.values import NOWHERE, Value, literal, number_of, same


@dataclass
class Options:
    """Information that a recipe does not contain."""

    gpus: int | None = None  # number of GPUs; None = default of the code base
    images: int | None = None  # number of training images, to convert iterations to epochs


@dataclass(frozen=True)
class LeftOut:
    """A key that was not translated."""

    key: str  # "MODEL.RPN.LOSS_WEIGHT"
    value: str  # formatted as in Python
    place: str  # "Base-RCNN-FPN.yaml:12"
    reason: str  # why it was left out, and what to do instead


@dataclass
class Imported:
    """A recipe as a Millrace configuration."""

    source: str  # "detectron2", "MMDetection"
    tree: dict[str, Setting]
    left_out: list[LeftOut]


@dataclass
class Found:
    """A value of the recipe that a rule reads. The methods return it as a given type, and raise
    RecipeError naming location and key if it has a different type."""

    path: str
    value: Value | None = None  # Python's None is stored as None
    place: Place = NOWHERE  # also set for Python's None

    def __bool__(self) -> bool:
        return self.value is not None

    def need(self) -> Value:
        if self.value is None:
            self.fail("value is missing")
        return self.value

    def real(self) -> float:
        number = number_of(self.need().data)
        if number is None:
            self.fail(f"expected a number, not {self.need().type_name}")
        return number

    def integer(self) -> int:
        number = self.real()
        if not number.is_integer() or abs(number) > 1e15:
            self.fail("expected an integer")
        return int(number)

    def flag(self) -> bool:
        data = self.need().data
        if not isinstance(data, bool):
            self.fail(f"expected True or False, not {self.need().type_name}")
        return data

    def text(self) -> str:
        data = self.need().data
        if not isinstance(data, str):
            self.fail(f"expected a string, not {self.need().type_name}")
        return data

    def reals(self) -> list[float]:
        """Returns the numbers in a list and in lists within it; a single number as a list."""
        if not self.is_list():
            return [self.real()]
        return [number for one in self.items() for number in one.reals()]

    def is_list(self) -> bool:
        return isinstance(self.need().data, tuple)

    def items(self) -> list[Found]:
        """Returns the items of a list, each with the path of the list."""
        return [Found(self.path, one, one.place) for one in self.need().items]

    def where(self) -> str:
        """Returns the location of an error: "FILE:12: MODEL.MASK_ON"."""
        return f"{self.place.text()}: {self.path}" if self.place.source else self.path

    def origin(self, how: str = "") -> str:
        """Returns the origin of a translated value, for its comment. `how`: the arithmetic."""
        text = f"{self.place.text()} {self.path}" if self.place.source else self.path
        return f"{text}: {how}" if how else text

    def fail(self, what: str) -> NoReturn:
        shown = self.value.text() if self.value else "None"
        raise RecipeError(f"{self.where()} = {shown}: {what}")


class Translation:
    """The state of a translation, which the rules of a code base read and change."""

    def __init__(self, tree: Value) -> None:
        self.ours: dict[str, Setting] = {}
        self.left_out: list[LeftOut] = []
        self._tree = tree
        self._read: set[str] = set()

    def look(self, path: str) -> Found:
        """Returns the value at a path, without marking it as read."""
        value = self._tree.at_path(path)
        if value is None:
            return Found(path)
        return Found(path, None if value.data is None else value, value.place)

    def read(self, path: str) -> Found:
        """Returns the value at a path; marks it and all values below it as read. None counts as
        missing."""
        self._read.add(path)
        return self.look(path)

    def read_any(self, *paths: str) -> Found:
        """Returns the value at the first of these paths that has a value."""
        found = [self.read(path) for path in paths]
        return next((one for one in found if one), Found(paths[0]))

    def real_or(self, path: str, otherwise: float) -> float:
        found = self.read(path)
        return found.real() if found else otherwise

    def flag_or(self, path: str, otherwise: bool) -> bool:
        found = self.read(path)
        return found.flag() if found else otherwise

    def text_or(self, path: str, otherwise: str) -> str:
        found = self.read(path)
        return found.text() if found else otherwise

    def put(self, key: str, data: Data, origin: Found, how: str = "") -> None:
        """Sets one of our values, translated from one of theirs; integral numbers become
        integers."""
        if isinstance(data, float):
            data = number(data)
        elif isinstance(data, list):
            data = [number(one) if isinstance(one, float) else one for one in data]
        set_path(self.ours, key, Setting(data, origin.origin(how)))

    def set(self, key: str, data: Scalar, why: str) -> None:
        """Sets one of our values that does not come from the recipe."""
        set_path(self.ours, key, Setting(data, why))

    def given(self, key: str) -> Data | None:
        """Returns the value that was set for one of our keys."""
        found = at_path(self.ours, key)
        return found.data if found else None

    def copy(self, theirs: str, ours: str, *others: str) -> None:
        """Copies a flag, a number or numbers unchanged. `others`: alternative keys in the
        recipe."""
        found = self.read_any(theirs, *others)
        if not found:
            return
        if isinstance(found.need().data, bool):
            self.put(ours, found.flag(), found)
        elif found.is_list():
            self.put(ours, found.reals(), found)
        else:
            self.put(ours, found.real(), found)

    def must(self, path: str, *possible: str) -> str:
        """Reads a value that must be one of `possible`, as a string or as Python formats it;
        otherwise the model is not supported."""
        found = self.read(path)
        if found.value is None and not found.place.source:
            raise RecipeError.at(self._tree.place, f"`{path}` is missing")
        value = found.need()
        text = value.data if isinstance(value.data, str) else value.text()
        if text not in possible:
            found.fail(f"not supported; expected {', '.join(possible)}")
        return text

    def leave_out(self, what: Found, reason: str) -> None:
        """Records that a value has no counterpart."""
        if what.value:
            place = what.value.place.text()
            self.left_out.append(LeftOut(what.path, what.value.text(), place, reason))

    def expect(self, path: str, ours: object, reason: str) -> None:
        """Reads a value, and records it as left out unless it equals Millrace's behaviour."""
        found = self.read(path)
        wanted = ours if isinstance(ours, Value) else literal(ours)
        if found and not same(found.need(), wanted):
            self.leave_out(found, reason)

    def leave_out_rest(self, path: str, reason: str) -> None:
        """Records the values below `path` that no rule has read, with this reason."""
        found = self.look(path)
        if self._is_read(path) or not found:
            return
        value = found.need()
        parts = list(value.members)
        if any(isinstance(one.data, dict) for one in value.items):
            parts = [str(index) for index in range(len(value.items))]
        elif not isinstance(value.data, dict):
            self._read.add(path)
            self.leave_out(found, reason)
        for key in parts:
            self.leave_out_rest(f"{path}.{key}" if path else key, reason)

    def _is_read(self, path: str) -> bool:
        parts = path.split(".")
        return any(".".join(parts[:end]) in self._read for end in range(1, len(parts) + 1))


Rule = Callable[[Translation, str], None]


def apply(t: Translation, rules: Sequence[Rule], at: str = "") -> None:
    """Applies the rules in order to the part of the recipe at a path such as "MODEL.RPN."."""
    for rule in rules:
        rule(t, at)


def copy(theirs: str, ours: str, *others: str) -> Rule:
    """Copies a value to a different key. `others`: alternative keys in the recipe."""
    return lambda t, at: t.copy(at + theirs, ours, *(at + one for one in others))


def required(theirs: str, *possible: str) -> Rule:
    """Requires one of these values; otherwise the model is not supported."""

    def rule(t: Translation, at: str) -> None:
        t.must(at + theirs, *possible)

    return rule


def refused(reason: str, *theirs: str) -> Rule:
    """Rejects keys that no model in Millrace supports."""

    def rule(t: Translation, at: str) -> None:
        for key in theirs:
            found = t.read(at + key)
            if found:
                found.fail(reason)

    return rule


def always(ours: str, value: Scalar, why: str) -> Rule:
    """Sets one of our values that does not come from the recipe."""
    return lambda t, at: t.set(ours, value, why)


def part(name: str, rules: Sequence[Rule]) -> Rule:
    """Applies rules below a key such as "loss_cls."."""
    return lambda t, at: apply(t, rules, at + name)


def expect(theirs: str, value: object, reason: str) -> Rule:
    """Expects Millrace's fixed value; a different value is recorded as left out."""
    return lambda t, at: t.expect(at + theirs, value, reason)


def ignore(*theirs: str) -> Rule:
    """Ignores keys that have no effect in Millrace."""

    def rule(t: Translation, at: str) -> None:
        for key in theirs:
            t.read(at + key)

    return rule


def number(value: float) -> int | float:
    """Returns integral numbers as int, for TOML."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def weights_file(address: str) -> str:
    """Returns the local path for weights that a recipe gives as a URL."""
    return "data/weights/" + address.rpartition("/")[2]
