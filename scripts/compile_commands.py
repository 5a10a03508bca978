#!/usr/bin/env python3
"""Writes compile_commands.json for clangd and other tools into the root of the checkout.

The build compiles unity batches: files that include several sources. CMake lists only these files,
so each source gets the command of the batch that includes it.

usage: compile_commands.py [BUILD]    the build folder (default: build/release)
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^#include "(/[^"]+)"', re.MULTILINE)


def entries(commands: list[dict[str, str]]) -> list[dict[str, str]]:
    """Returns one entry per source; the first, if a source is compiled several times."""
    found: dict[str, dict[str, str]] = {}
    for entry in commands:
        file = entry["file"]
        joined = pathlib.Path(file)
        sources = [file]
        if "/Unity/unity_" in file and joined.exists():
            sources = INCLUDE.findall(joined.read_text(encoding="utf-8"))
        for source in sources:
            command = entry["command"].replace(file, source)
            found.setdefault(source, {**entry, "file": source, "command": command})
    return [found[source] for source in sorted(found)]


def main() -> None:
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/release"
    listed = build / "compile_commands.json"
    if not listed.exists():
        sys.exit(f"compile_commands: {listed} not found; run make build or cmake --preset release")
    text = json.dumps(entries(json.loads(listed.read_text(encoding="utf-8"))), indent=1) + "\n"
    target = ROOT / "compile_commands.json"
    if target.is_symlink() or not target.exists() or target.read_text(encoding="utf-8") != text:
        target.unlink(missing_ok=True)
        target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
