#!/usr/bin/env python3
"""Checks the viewer in tools/report: each module's syntax (if node is installed), that its imports
exist and are used, and line lengths in the style sheet; and that no C++ code writes HTML.

usage: check_viewer.py [ROOT]    the root of a checkout (default: this one)
"""

import pathlib
import re
import shutil
import subprocess
import sys

COLUMNS = 110  # of the style sheet; clang-format limits the modules to 100
IMPORT = re.compile(r'^import \{([^}]+)\} from "[./a-z]*/([a-z]+)\.js";$', re.M)
EXPORT = re.compile(r"^export (?:function|class|const) (\w+)", re.M)
# HTML elements; <b> etc. also occur in usage texts and doc comments.
MARKUP = re.compile(r"</?(?:html|body|div|span|p|td|th|tr|table|svg|script|style|section|button)\b"
                    r"[^>]*>|innerHTML")


def scripts(root: pathlib.Path) -> list:
    return sorted((root / "tools/report").rglob("*.js"))


def module_problems(root: pathlib.Path):
    files = scripts(root)
    texts = {file.stem: file.read_text() for file in files}
    places = {file.stem: file.relative_to(root) for file in files}
    exports = {name: set(EXPORT.findall(text)) for name, text in texts.items()}
    listed = "tools/report/viewer/modules.txt"
    order = (root / listed).read_text().split() + ["viewer"]
    if sorted(order) != sorted(texts):
        yield f"{listed}: {sorted(set(order) ^ set(texts))} not listed, or file not found"
        return
    used = {"viewer": set()}
    for name in order:
        text, where = texts[name], places[name]
        for names, module in IMPORT.findall(text):
            wanted = set(re.findall(r"\w+", names))
            used.setdefault(module, set()).update(wanted)
            if order.index(module) >= order.index(name):
                yield f"{where}: imports {module}, which is listed later"
            for one in sorted(wanted - exports.get(module, set())):
                yield f"{where}: imports '{one}', which {module} does not export"
            for one in sorted(wanted):
                if len(re.findall(rf"\b{one}\b", text)) < 2:
                    yield f"{where}: imports '{one}' but does not use it"
        if len(re.findall(r"^import ", text, re.M)) != len(IMPORT.findall(text)):
            yield f"{where}: unsupported form of import"
    for name, names in exports.items():
        for one in sorted(names - used.get(name, set())):
            yield f"{places[name]}: exports '{one}', which no module imports"


def syntax_problems(root: pathlib.Path):
    node = shutil.which("node")
    for file in scripts(root):
        if "innerHTML" in file.read_text():
            yield f"{file.relative_to(root)}: innerHTML parses text as HTML; use h() of dom.js"
        if node:
            done = subprocess.run([node, "--input-type=module", "--check"], input=file.read_text(),
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                yield f"{file.relative_to(root)}: {done.stderr.strip()}"


def line_problems(root: pathlib.Path):
    for file in sorted((root / "tools/report").iterdir()):
        if file.suffix == ".css":
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if len(line) > COLUMNS or line != line.rstrip():
                    yield (f"{file.relative_to(root)}:{number}: more than {COLUMNS} columns, "
                           "or trailing space")


def markup_problems(root: pathlib.Path):
    for top in ("base", "callbacks", "cli", "coco", "dataflow", "millrace", "models", "plugins",
                "tools", "trainer"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp"):
                continue
            for number, line in enumerate(file.read_text().splitlines(), 1):
                if MARKUP.search(line) and not line.startswith("#include"):
                    yield f"{file.relative_to(root)}:{number}: HTML in C++; write JSON instead"


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__ + "/../..").resolve()
    checks = (module_problems, syntax_problems, line_problems, markup_problems)
    found = [problem for check in checks for problem in check(root)]
    print("\n".join(found) or "the viewer is consistent; no C++ code writes HTML")
    sys.exit(bool(found))
