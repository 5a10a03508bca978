"""Millrace configurations: a tree of settings, and its TOML text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Union

from millrace._toml import key_text, value_text
from millrace.migrate.errors import printable

Scalar = Union[bool, int, float, str]
Data = Union[Scalar, Sequence[Scalar], Sequence["dict[str, Setting]"], "dict[str, Setting]"]


@dataclass
class Setting:
    """A value and its origin."""

    data: Data
    origin: str = ""

    def table(self) -> dict[str, Setting]:
        assert isinstance(self.data, dict)
        return self.data


def set_path(table: dict[str, Setting], path: str, setting: Setting) -> None:
    key, _, rest = path.partition(".")
    if not rest:
        table[key] = setting
        return
    if key not in table:
        table[key] = Setting({}, setting.origin)
    set_path(table[key].table(), rest, setting)


def at_path(table: dict[str, Setting], path: str) -> Setting | None:
    key, _, rest = path.partition(".")
    found = table.get(key)
    if not rest or found is None:
        return found
    return at_path(found.data, rest) if isinstance(found.data, dict) else None


def leaves(table: dict[str, Setting]) -> int:
    """Returns the number of values."""
    return sum(leaves(one.data) if isinstance(one.data, dict) else 1 for one in table.values())


def to_toml(table: dict[str, Setting]) -> str:
    """Returns the TOML text, in which a comment after each value names its origin."""
    return "".join(_lines(table, "")).removeprefix("\n")


def _plain(data: object) -> object:
    """Returns the values without origins."""
    if isinstance(data, dict):
        return {key: _plain(one.data) for key, one in data.items()}
    return [_plain(one) for one in data] if isinstance(data, list) else data


def _is_table_list(data: Data) -> bool:
    return isinstance(data, list) and len(data) > 0 and all(isinstance(one, dict) for one in data)


def _lines(table: dict[str, Setting], path: str) -> list[str]:
    lines = []
    for key, one in table.items():
        if not isinstance(one.data, dict) and not _is_table_list(one.data):
            line = f"{key_text(key)} = {value_text(_plain(one.data))}"
            lines.append(f"{line:<44}  # {printable(one.origin)}\n")
    for key, one in table.items():
        name = f"{path}.{key_text(key)}" if path else key_text(key)
        if isinstance(one.data, dict):
            lines += [f"\n[{name}]\n", *_lines(one.data, name)]
        elif isinstance(one.data, list) and _is_table_list(one.data):
            for item in one.data:
                assert isinstance(item, dict)
                lines += [f"\n[[{name}]]\n", *_lines(item, name)]
    return lines
