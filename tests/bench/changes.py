#!/usr/bin/env python3
"""Compares the tables of docs/benchmarks.md with those of a commit.

    tests/bench/changes.py [COMMIT]

Prints each value that differs by a tenth or more from the page at COMMIT (default: HEAD), ours and
the peers'; changes of the peers are due to the machine. Ratios are omitted. `make bench` runs this
last.
"""
import re
import subprocess
import sys

from comparison import show
from tables import PLACE

PAGE = "docs/benchmarks.md"
FIGURE = re.compile(r"^[+-]?([\d,]+(?:\.\d+)?)( ?%|x)?( [(].*)?$")
LEAST = 0.1


def figures(text):
    """Returns {(table, row, column): value} of a page; a row's name is its cells without values."""
    found = {}
    for _, name, table, _ in PLACE.findall(text):
        lines = [[cell.strip() for cell in line.strip("|").split("|")]
                 for line in table.splitlines() if line.startswith("|")]
        for cells in lines[2:]:
            row = ", ".join(cell for cell in cells if cell and not FIGURE.match(cell))
            for column, cell in zip(lines[0], cells):
                match = FIGURE.match(cell)
                if match and match[2] != "x" and "x^" not in column:
                    found.setdefault((name, row, column), float(match[1].replace(",", "")))
    return found


def machines(text):
    return set(re.findall(r"^Measured .* on (.*)\.$", text, re.MULTILINE))


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    shown = subprocess.run(["git", "show", f"{commit}:{PAGE}"], text=True, capture_output=True)
    if shown.returncode:
        sys.exit(f"cannot read {PAGE} at {commit}: {shown.stderr.strip()}")
    before = shown.stdout
    with open(PAGE) as file:
        now = file.read()
    if machines(before) != machines(now):
        print(f"the page at {commit} was measured on different machines: "
              f"{', '.join(machines(before))}")
    old, rows = figures(before), []
    for key, value in figures(now).items():
        if old.get(key) and abs(value / old[key] - 1) >= LEAST:
            rows.append([*key, f"{old[key]:g}", f"{value:g}", f"{value / old[key]:.2f}x"])
    show("changes", f"Values that differ from those at {commit} by a tenth or more",
         ["table", "row", "column", "before", "now", "now / before"], rows)


if __name__ == "__main__":
    main()
