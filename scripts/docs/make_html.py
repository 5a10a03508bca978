#!/usr/bin/env python3
"""Makes build/docs/html: the Markdown pages and the reference of the registry as HTML.

usage: make_html.py [OUT]

The reference is made from schema/reference.json, which a test compares with the program. Every
warning is an error. The pages can be opened from disk and load nothing from a network.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from pages import COMMENT, FENCE, INDENTED, IN_CODE, LINK, ROOT, prose, tracked
from reference import reference_pages

HERE = pathlib.Path(__file__).resolve().parent
LANGUAGES = {"h": "cpp", "cpp": "cpp", "cu": "cpp", "cuh": "cpp", "c": "c", "py": "python",
             "toml": "toml", "cmake": "cmake", "sh": "sh", "yaml": "yaml", "json": "json",
             "in": "none"}
INDEX = pathlib.Path("docs/index.md")
REFERENCE = pathlib.Path("docs/configuration.md")
KNOWN = ROOT / "schema/reference.json"


def language_of(name: pathlib.Path, text: str) -> str:
    if name.suffix:
        return LANGUAGES.get(name.suffix[1:], "none")
    if name.name in ("Makefile", "Dockerfile"):
        return "make" if name.name == "Makefile" else "docker"
    if not text.startswith("#!"):
        return "none"
    return "python" if "python" in text.splitlines()[0] else "sh"


class Site:
    """The input of Sphinx: the pages in the folders of the repository, under `root`."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.pages = set(tracked(ROOT, "*.md"))
        self.files = set(tracked(ROOT))
        self.lists = [INDEX, *sorted(page for page in self.pages if page.match("docs/*/README.md"))]
        self.sources: set[pathlib.Path] = set()  # shown because a page links to them
        self.listed: set[pathlib.Path] = set()  # in the tables of contents

    def write(self, name: pathlib.Path, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def link(self, page: pathlib.Path, match: re.Match[str]) -> str:
        path, _, anchor = match["to"].partition("#")
        if not path or re.match(r"[a-z][a-z+.-]*:", path):
            return match[0]
        to = pathlib.Path(os.path.normpath(page.parent / path))
        if to / "README.md" in self.pages:
            to = to / "README.md"
        elif to in self.files and to not in self.pages and not match["mark"]:
            self.sources.add(to)
            to = to.with_name(to.name + ".md")
        elif to not in self.files:
            return match["text"]  # a folder
        near = os.path.relpath(to, page.parent)
        return f"{match['mark']}[{match['text']}]({near}{'#' + anchor if anchor else ''})"

    def add_page(self, page: pathlib.Path) -> None:
        text = (ROOT / page).read_text(encoding="utf-8")
        contents = self.contents(page, text) if page in self.lists else ""
        # Text in code that looks like a link is not changed.
        kept: list[str] = []

        def keep(match: re.Match[str]) -> str:
            kept.append(match[0])
            return f"\0{len(kept) - 1}\0"

        text = IN_CODE.sub(keep, INDENTED.sub(keep, COMMENT.sub("", FENCE.sub(keep, text))))
        text = LINK.sub(lambda match: self.link(page, match), text)
        while "\0" in text:
            text = re.sub("\0(\\d+)\0", lambda match: kept[int(match[1])], text)
        self.write(page, text + contents)

    def contents(self, page: pathlib.Path, text: str) -> str:
        """Returns Sphinx's toctrees of the pages that an index page links to, one per heading."""
        result = ""
        parts = re.split(r"^## +(.+)$", prose(text), flags=re.MULTILINE)
        for heading, part in zip(["", *parts[1::2]], parts[0::2]):
            names = []
            for match in LINK.finditer(part):
                to = pathlib.Path(os.path.normpath(page.parent / match["to"].partition("#")[0]))
                if to / "README.md" in self.pages:
                    to = to / "README.md"
                if to in self.pages and to != page and to not in self.listed:
                    self.listed.add(to)
                    names.append("/" + str(to.with_suffix("")))
            if names:
                result += "\n```{toctree}\n:hidden:\n:maxdepth: 1\n"
                result += f":caption: {heading}\n" if heading else ""
                result += "\n" + "\n".join(names) + "\n```\n"
        return result

    def add_source(self, name: pathlib.Path) -> None:
        text = (ROOT / name).read_text(encoding="utf-8")
        fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
        self.write(name.with_name(name.name + ".md"),
                   f"---\norphan: true\nnosearch: true\n---\n\n# {name}\n\n"
                   f"{fence}{language_of(name, text)}\n{text}{fence}\n")

    def add_reference(self) -> None:
        made = reference_pages(json.loads(KNOWN.read_text(encoding="utf-8")))
        names = "".join(f"/docs/reference/{name}\n" for name in made)
        with (self.root / REFERENCE).open("a", encoding="utf-8") as page:
            page.write("\n" + "".join(f"- [{text.splitlines()[0].removeprefix('# ')}]"
                                      f"(reference/{name}.md)\n" for name, text in made.items()))
            page.write(f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n\n{names}```\n")
        for name, text in made.items():
            self.write(REFERENCE.parent / "reference" / f"{name}.md", text)

    def add_all(self) -> None:
        for page in [*self.lists, *sorted(self.pages - set(self.lists))]:
            self.add_page(page)
        for page in self.pages - self.listed - set(self.lists):
            if page.parts[0] != "docs":  # pages of docs/ must be in a table of contents
                self.write(page, "---\norphan: true\n---\n\n"
                           + (self.root / page).read_text(encoding="utf-8"))
        for name in sorted(self.sources):
            self.add_source(name)
        for picture in tracked(ROOT, "docs/*.svg", "docs/*.png", "docs/*.jpg"):
            (self.root / picture).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / picture, self.root / picture)
        self.add_reference()
        shutil.copy(HERE / "conf.py", self.root)
        (self.root / "_static").mkdir()
        shutil.copy(HERE / "millrace.css", self.root / "_static")


def main() -> int:
    if len(sys.argv) > 2:
        print(__doc__, file=sys.stderr)
        return 2
    out = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/docs").absolute()
    source, html = out / "pages", out / "html"
    for folder in (source, html):
        shutil.rmtree(folder, ignore_errors=True)
    Site(source).add_all()
    made = subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q",
                           "-j", "auto", "-d", str(out / "doctrees"), "-E", str(source), str(html)])
    if made.returncode:
        return 1
    (html / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>Millrace</title>'
        '<meta http-equiv="refresh" content="0; url=docs/index.html">'
        '<a href="docs/index.html">Millrace</a>\n', encoding="utf-8")
    print(f"{html / 'index.html'}: {len(list(html.rglob('*.html')))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
