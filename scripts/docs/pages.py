"""Reads the Markdown pages of the project and the snippets in them.

An HTML comment before a snippet, which readers do not see, specifies how the snippet is checked:

    <!-- check: no: REASON -->                not checked
    <!-- check: after CODE -->                C++: declarations that it needs
    <!-- check: whole -->                    C++: a whole file, compiled as printed
    <!-- check: inside CODE -->               C++: statements, preceded by these declarations
    <!-- check: base FILE -->                 TOML: a part of a file that inherits FILE
    <!-- check: stages -->                    TOML: stages after `decode`
    <!-- check: file NAME -->                 a whole file of a tutorial
    <!-- check: diff NAME -->                 a change to that file
    <!-- check: fails -->                     commands of a tutorial that end with exit code 2
    <!-- check: output -->                    output of the preceding commands, except numbers
"""

import dataclasses
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+]*)[ \t]*\n(?P<text>.*?)"
                   r"^(?P=indent)```[ \t]*$", re.MULTILINE | re.DOTALL)
PART = re.compile(r"^## +(.+?)\s*$", re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)(?:(?: {4}[^\n]*|[ \t]*)\n)+")
CHECK = re.compile(r"<!-- check: (?P<how>\w+)(?P<rest>(?:(?!-->).)*)-->\s*\Z", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?P<to>[^)\s]+)\)")
IN_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@dataclasses.dataclass(frozen=True)
class Snippet:
    page: pathlib.Path  # relative to the root
    line: int
    language: str  # "" for an indented block
    text: str
    how: str = ""  # the type of check in its comment
    rest: str = ""
    part: str = ""  # the heading of level 2 above it

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def tracked(root: pathlib.Path, *patterns: str) -> list[pathlib.Path]:
    """Returns files that git tracks or does not ignore, relative to the root."""
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others",
               "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return sorted({pathlib.Path(name) for name in filter(None, listed.split("\0"))
                   if (root / name).is_file()})


def snippets(root: pathlib.Path, page: pathlib.Path) -> list[Snippet]:
    """Returns fenced and indented blocks in the order of the page."""
    text = (root / page).read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        lines = [line.removeprefix(indent) for line in match["text"].splitlines(keepends=True)]
        found.append((match.start(), match["language"], "".join(lines)))
    blank = FENCE.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), text)
    blank = COMMENT.sub(lambda match: re.sub(r"[^\n]", "x", match[0]), blank)
    for match in INDENTED.finditer(blank):
        if match[0].strip():
            lines = [line[4:] for line in match[0].splitlines(keepends=True)]
            body = "".join(line or "\n" for line in lines).rstrip() + "\n"
            found.append((match.start(), "", body))
    result = []
    parts = [(match.start(), match[1]) for match in PART.finditer(blank)]
    for start, language, body in sorted(found):
        check = CHECK.search(text[:start])
        result.append(Snippet(page, text.count("\n", 0, start) + 1, language, body,
                              check["how"] if check else "",
                              check["rest"].strip() if check else "",
                              next((name for at, name in reversed(parts) if at < start), "")))
    return result


def prose(text: str) -> str:
    """Returns a page without code blocks and comments; line numbers do not change."""
    for pattern in (FENCE, COMMENT, INDENTED):
        text = pattern.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text
