"""Errors in recipes."""

from __future__ import annotations

from dataclasses import dataclass

from millrace._command import WrongUse


@dataclass(frozen=True)
class Place:
    """The location where a value was written: "Base-RCNN-FPN.yaml:29". Line 0 = no line."""

    source: str
    line: int = 0

    def text(self) -> str:
        return f"{self.source}:{self.line}" if self.line > 0 else self.source


class RecipeError(WrongUse):
    """A recipe that cannot be read or translated; the message names file and line."""

    @classmethod
    def at(cls, place: Place, what: str) -> RecipeError:
        return cls(f"{place.text()}: {what}")


class TooLargeError(RecipeError):
    """A recipe that exceeds the limits on values or files."""


def printable(text: str) -> str:
    """Escapes control characters, which would affect terminals and comments."""
    return "".join(
        one if one.isprintable() or one == " " else one.encode("unicode_escape").decode()
        for one in text
    )
