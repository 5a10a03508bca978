"""Values of a recipe: Python literals. Each value stores where it was written and is immutable, so
that it can be used in several places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from millrace.migrate.errors import Place, RecipeError, TooLargeError, printable

MOST_ELEMENTS = 100_000
MOST_CHARACTERS = 1_000_000
DEEPEST = 100  # nesting depth of lists and dicts

Data = Union[None, bool, int, float, str, "tuple[Value, ...]", "dict[str, Value]"]

NOWHERE = Place("")


class Value:
    """One value. `elements` and `characters` count all values below it, as often as they occur."""

    __slots__ = ("characters", "data", "depth", "elements", "place")

    def __init__(self, data: Data, place: Place = NOWHERE) -> None:
        self.data = data
        self.place = place
        below = children(data)
        self.elements: int = 1 + sum(one.elements for one in below)
        self.characters: int = sum(one.characters for one in below)
        self.depth: int = 1 + max((one.depth for one in below), default=0)
        if isinstance(data, str):
            self.characters = len(data)
        elif isinstance(data, dict):
            self.characters += sum(map(len, data))

    def at(self, place: Place) -> Value:
        """Returns the value with a different location."""
        return Value(self.data, place)

    @property
    def members(self) -> dict[str, Value]:
        """The members of a dict; empty for other types."""
        return self.data if isinstance(self.data, dict) else {}

    @property
    def items(self) -> tuple[Value, ...]:
        """The items of a list or tuple; empty for other types."""
        return self.data if isinstance(self.data, tuple) else ()

    def at_path(self, path: str) -> Value | None:
        """Returns the value at a path of keys and list indices, such as "rcnn.0.sampler.num"."""
        found: Value | None = self
        for key in path.split(".") if path else ():
            found = found and found.member(key)
        return found

    def member(self, key: str) -> Value | None:
        if isinstance(self.data, tuple) and key.isascii() and key.isdigit():
            index = int(key[:9])
            return self.data[index] if index < len(self.data) else None
        return self.members.get(key)

    def text(self, most: int = 60) -> str:
        """Formats the value as Python does: `[0.5, 'a', None]`; a long text ends in "..."."""
        text = ""
        for piece in _pieces(self):
            text += piece[: most + 1]
            if len(text) > most:
                return text[: most - 3] + "..."
        return text

    @property
    def type_name(self) -> str:
        if self.data is None:
            return "None"
        return _TYPE_NAMES[type(self.data)]


_TYPE_NAMES = {
    bool: "a bool",
    int: "an integer",
    float: "a number",
    str: "a string",
    tuple: "a list",
    dict: "a dict",
}


def children(data: Data) -> list[Value]:
    if isinstance(data, dict):
        return list(data.values())
    return list(data) if isinstance(data, tuple) else []


def number_of(data: Data) -> float | None:
    """Returns the number; None for other types, including bool."""
    return float(data) if isinstance(data, (int, float)) and not isinstance(data, bool) else None


def plain(number: float) -> str:
    """Returns the shortest text for a number; integers without a decimal point."""
    return repr(number).removesuffix(".0")


def literal(data: object) -> Value:
    """Returns a value that does not come from a file."""
    if isinstance(data, (list, tuple)):
        return Value(tuple(literal(one) for one in data))
    assert data is None or isinstance(data, (bool, int, float, str))
    return Value(data)


def same(a: Value, b: Value) -> bool:
    """Returns whether two values are equal, ignoring locations; 1 equals 1.0."""
    x, y = number_of(a.data), number_of(b.data)
    if x is not None and y is not None:
        return x == y
    if type(a.data) is not type(b.data):
        return False
    if isinstance(a.data, (tuple, dict)):
        return (
            list(a.members) == list(b.members)
            and len(children(a.data)) == len(children(b.data))
            and all(map(same, children(a.data), children(b.data)))
        )
    return a.data == b.data


def merged(under: Value, over: Value) -> Value:
    """Merges `over` into `under`: dicts by member, other values replace. A dict in `over` with
    `_delete_=True` also replaces."""
    members = dict(under.members)
    for key, value in over.members.items():
        present = members.get(key)
        mark = value.members.get("_delete_")
        replaces = mark is not None and mark.data is True
        if present and isinstance(present.data, dict) and isinstance(value.data, dict):
            if not replaces:
                members[key] = merged(present, value)
                continue
        if isinstance(value.data, dict):  # also removes `_delete_` at deeper levels
            kept = merged(Value({}, value.place), value).members
            value = Value({k: v for k, v in kept.items() if k != "_delete_"}, value.place)
        members[key] = value
    return Value(members, under.place)


def with_path(tree: Value, path: str, value: Value) -> Value:
    """Returns `tree` with a value set at a path of keys and existing list indices. Creates missing
    dicts. Raises RecipeError if the path is invalid."""
    parts = path.split(".")
    if len(parts) + value.depth > DEEPEST:
        raise TooLargeError.at(value.place, "values are nested too deeply")

    def changed(at: Value, rest: list[str]) -> Value:
        if not rest:
            return value
        key = rest[0]
        if isinstance(at.data, dict):
            below = at.data.get(key, Value({}, value.place))
            return Value({**at.data, key: changed(below, rest[1:])}, at.place)
        present = at.member(key)
        if present is None:
            raise RecipeError.at(value.place, f"'{path}' not found")
        index = int(key)
        items = (*at.items[:index], changed(present, rest[1:]), *at.items[index + 1 :])
        return Value(items, at.place)

    return changed(tree, parts)


class Budget:
    """Limits the size of a recipe with all files that it inherits from. Without limits, a few lines
    could fill the memory, through names of nested lists or YAML aliases."""

    def __init__(self) -> None:
        self._elements = MOST_ELEMENTS
        self._characters = MOST_CHARACTERS

    def take(self, value: Value, place: Place) -> Value:
        """Counts a value and all values below it."""
        self.take_parts(value.elements, value.characters, place)
        self.check_depth(value, place)
        return value

    def take_own(self, value: Value, place: Place) -> Value:
        """Counts a value whose parts have already been counted."""
        own = value.characters - sum(one.characters for one in children(value.data))
        self.take_parts(1, own, place)
        self.check_depth(value, place)
        return value

    def take_parts(self, elements: int, characters: int, place: Place) -> None:
        self._elements -= elements
        self._characters -= characters
        if self._elements < 0:
            raise TooLargeError.at(place, f"more than {MOST_ELEMENTS:,} values in this recipe")
        if self._characters < 0:
            raise TooLargeError.at(
                place, f"more than {MOST_CHARACTERS:,} characters in this recipe"
            )

    def check_depth(self, value: Value, place: Place) -> None:
        if value.depth > DEEPEST:
            raise TooLargeError.at(place, "values are nested too deeply")


def _pieces(value: Value) -> Iterator[str]:
    data = value.data
    if isinstance(data, str):
        yield f"'{printable(data)}'"
    elif isinstance(data, dict):
        yield "dict("
        for number, (key, one) in enumerate(data.items()):
            yield f"{', ' if number else ''}{printable(key)}="
            yield from _pieces(one)
        yield ")"
    elif isinstance(data, tuple):
        yield "["
        for number, one in enumerate(data):
            yield ", " if number else ""
            yield from _pieces(one)
        yield "]"
    else:
        yield plain(data) if isinstance(data, float) else str(data)
