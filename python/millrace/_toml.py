"""Formats values and keys as TOML."""

from __future__ import annotations

import json
import re
from typing import Any


def value_text(value: Any) -> str:
    """Formats a value on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, dict):
        members = (f"{key_text(key)} = {value_text(member)}" for key, member in value.items())
        return f"{{ {', '.join(members)} }}" if value else "{}"
    return repr(value)


def key_text(key: str) -> str:
    """Formats a key, bare if possible."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)
