"""Converts imported recipes to a form that is easy to test."""

from dataclasses import dataclass
from typing import Any

from millrace.migrate import Imported
from millrace.migrate.toml import Setting


@dataclass
class Result:
    values: dict[str, Any]  # by "table.key"
    origins: dict[str, str]
    reasons: dict[str, str]  # why values were left out, by key

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def result(imported: Imported) -> Result:
    found = Result({}, {}, {one.key: one.reason for one in imported.left_out})

    def walk(table: dict[str, Setting], above: str) -> None:
        for key, one in table.items():
            if isinstance(one.data, dict):
                walk(one.data, f"{above}{key}.")
            else:
                found.values[above + key] = _plain(one.data)
                found.origins[above + key] = one.origin

    walk(imported.tree, "")
    return found


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(one.data) for key, one in data.items()}
    return [_plain(one) for one in data] if isinstance(data, list) else data
