"""What can be wrong with a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from millrace._command import WrongUse


@dataclass(frozen=True)
class Place:
    """Where a value was written: "Base-RCNN-FPN.yaml:29". Line 0: the source has no lines."""

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
    """A recipe that would make more values than a recipe may."""


def printable(text: str) -> str:
    """The text with its control characters escaped: neither a terminal nor a comment obeys it."""
    return "".join(
        one if one.isprintable() or one == " " else one.encode("unicode_escape").decode()
        for one in text
    )
