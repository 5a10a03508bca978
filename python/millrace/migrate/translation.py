"""A recipe on its way into a configuration of ours: what of it has been read, what became of it,
and what has no counterpart. Whatever the rules of a code base do not read is listed, so that
nothing is lost in silence.

A table of rules is a list of functions that take the translation and the path of a part: `copy`,
`expect`, `ignore` and their like make those that need no arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from millrace.migrate.errors import Place, RecipeError
from millrace.migrate.toml import Data, Scalar, Setting, at_path, set_path
from millrace.migrate.values import NOWHERE, Value, literal, number_of, same


@dataclass
class Options:
    """What a recipe does not say by itself."""

    gpus: int | None = None  # that it is for; None: as its code base has it
    images: int | None = None  # of the training split, that turn iterations into epochs


@dataclass(frozen=True)
class LeftOut:
    """A key that was not translated."""

    key: str  # "MODEL.RPN.LOSS_WEIGHT"
    value: str  # as Python writes it
    place: str  # "Base-RCNN-FPN.yaml:12"
    reason: str  # why, and what to do instead


@dataclass
class Imported:
    """A recipe as a configuration of ours."""

    source: str  # "detectron2", "MMDetection"
    tree: dict[str, Setting]
    left_out: list[LeftOut]


@dataclass
class Found:
    """A value of the recipe that a rule reads, of the type that it needs. The methods raise
    RecipeError naming place and key if it has another."""

    path: str
    value: Value | None = None  # None: there is none, or Python's None
    place: Place = NOWHERE  # also where None stands

    def __bool__(self) -> bool:
        return self.value is not None

    def need(self) -> Value:
        if self.value is None:
            self.fail("a value is needed")
        return self.value

    def real(self) -> float:
        number = number_of(self.need().data)
        if number is None:
            self.fail(f"a number is needed, not {self.need().type_name}")
        return number

    def integer(self) -> int:
        number = self.real()
        if not number.is_integer() or abs(number) > 1e15:
            self.fail("a whole number is needed")
        return int(number)

    def flag(self) -> bool:
        data = self.need().data
        if not isinstance(data, bool):
            self.fail(f"True or False is needed, not {self.need().type_name}")
        return data

    def text(self) -> str:
        data = self.need().data
        if not isinstance(data, str):
            self.fail(f"a string is needed, not {self.need().type_name}")
        return data

    def reals(self) -> list[float]:
        """The numbers of a list, also of lists within it; of one number that."""
        if not self.is_list():
            return [self.real()]
        return [number for one in self.items() for number in one.reals()]

    def is_list(self) -> bool:
        return isinstance(self.need().data, tuple)

    def items(self) -> list[Found]:
        """Of a list, each under the list's path."""
        return [Found(self.path, one, one.place) for one in self.need().items]

    def where(self) -> str:
        """ "FILE:12: MODEL.MASK_ON": where an error is."""
        return f"{self.place.text()}: {self.path}" if self.place.source else self.path

    def origin(self, how: str = "") -> str:
        """Where a value of ours comes from, as comments name it. `how`: the arithmetic."""
        text = f"{self.place.text()} {self.path}" if self.place.source else self.path
        return f"{text}: {how}" if how else text

    def fail(self, what: str) -> NoReturn:
        shown = self.value.text() if self.value else "None"
        raise RecipeError(f"{self.where()} = {shown}: {what}")


class Translation:
    """What a code base's rules work on."""

    def __init__(self, tree: Value) -> None:
        self.ours: dict[str, Setting] = {}
        self.left_out: list[LeftOut] = []
        self._tree = tree
        self._read: set[str] = set()

    def look(self, path: str) -> Found:
        """The value at a path, without reading it."""
        value = self._tree.at_path(path)
        if value is None:
            return Found(path)
        return Found(path, None if value.data is None else value, value.place)

    def read(self, path: str) -> Found:
        """The value at a path, which counts as read, with all below it. None counts as nothing."""
        self._read.add(path)
        return self.look(path)

    def read_any(self, *paths: str) -> Found:
        """The value at the first of these paths that there is."""
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
        """Sets a value of ours that comes from one of theirs; whole numbers as integers."""
        if isinstance(data, float):
            data = number(data)
        elif isinstance(data, list):
            data = [number(one) if isinstance(one, float) else one for one in data]
        set_path(self.ours, key, Setting(data, origin.origin(how)))

    def set(self, key: str, data: Scalar, why: str) -> None:
        """Sets a value that stands for none of theirs."""
        set_path(self.ours, key, Setting(data, why))

    def given(self, key: str) -> Data | None:
        """What has been set before."""
        found = at_path(self.ours, key)
        return found.data if found else None

    def copy(self, theirs: str, ours: str, *others: str) -> None:
        """A flag, a number or numbers as they are, under our name. `others`: of theirs, for the
        same."""
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
        """A value that must be one of these, as a string or as Python writes it, else the model is
        none of ours."""
        found = self.read(path)
        if found.value is None and not found.place.source:
            raise RecipeError.at(self._tree.place, f"`{path}` is missing")
        value = found.need()
        text = value.data if isinstance(value.data, str) else value.text()
        if text not in possible:
            found.fail(f"no model here is made so; what can be imported: {', '.join(possible)}")
        return text

    def leave_out(self, what: Found, reason: str) -> None:
        """Notes that a value has no counterpart."""
        if what.value:
            place = what.value.place.text()
            self.left_out.append(LeftOut(what.path, what.value.text(), place, reason))

    def expect(self, path: str, ours: object, reason: str) -> None:
        """Reads a value and notes it, unless it is what is done here anyhow."""
        found = self.read(path)
        wanted = ours if isinstance(ours, Value) else literal(ours)
        if found and not same(found.need(), wanted):
            self.leave_out(found, reason)

    def leave_out_rest(self, path: str, reason: str) -> None:
        """Notes what nobody has read below `path` with this reason."""
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
    """Each rule, in their order, for the part of the recipe at a path such as "MODEL.RPN."."""
    for rule in rules:
        rule(t, at)


def copy(theirs: str, ours: str, *others: str) -> Rule:
    """Theirs is ours by another name. `others`: of theirs, for the same."""
    return lambda t, at: t.copy(at + theirs, ours, *(at + one for one in others))


def required(theirs: str, *possible: str) -> Rule:
    """One of these, else the model is none of ours."""

    def rule(t: Translation, at: str) -> None:
        t.must(at + theirs, *possible)

    return rule


def refused(reason: str, *theirs: str) -> Rule:
    """Keys that no model of ours has."""

    def rule(t: Translation, at: str) -> None:
        for key in theirs:
            found = t.read(at + key)
            if found:
                found.fail(reason)

    return rule


def always(ours: str, value: Scalar, why: str) -> Rule:
    """A value of ours that stands for none of theirs."""
    return lambda t, at: t.set(ours, value, why)


def part(name: str, rules: Sequence[Rule]) -> Rule:
    """Rules for what stands below a key such as "loss_cls."."""
    return lambda t, at: apply(t, rules, at + name)


def expect(theirs: str, value: object, reason: str) -> Rule:
    """What is always so here; another value is left out."""
    return lambda t, at: t.expect(at + theirs, value, reason)


def ignore(*theirs: str) -> Rule:
    """Keys that change nothing here."""

    def rule(t: Translation, at: str) -> None:
        for key in theirs:
            t.read(at + key)

    return rule


def number(value: float) -> int | float:
    """As TOML writes it: whole ones as integers."""
    return int(value) if float(value).is_integer() and abs(value) < 1e15 else value


def weights_file(address: str) -> str:
    """Where the weights of a recipe are looked for that have an address."""
    return "data/weights/" + address.rpartition("/")[2]
