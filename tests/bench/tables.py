#!/usr/bin/env python3
"""Writes the tables of `make bench` into docs/benchmarks.md, and as JSON into docs/benchmarks.json,
with the commit and the machine.

    tests/bench/tables.py FOLDER [PAGE]

FOLDER contains a NAME.md for each measured table (comparison.show). In PAGE (default:
docs/benchmarks.md), the text between `<!-- table NAME -->` and the next `<!-- end -->` is replaced
by NAME.md; other tables are kept. A table without these markers in the page is an
error.
"""
import datetime
import json
import os
import re
import subprocess
import sys

PLACE = re.compile(r"(<!-- table ([a-z0-9-]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def machine():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{model[1] if model else 'unknown processor'}, {os.cpu_count()} cores, {memory:.0f} GiB"


def commit():
    def git(*words):
        return subprocess.run(["git", *words], check=True, text=True, capture_output=True).stdout

    changed = git("status", "--porcelain", "--untracked-files=no").strip()
    return git("rev-parse", "--short=10", "HEAD").strip() + (" with changes" if changed else "")


def main():
    folder, page, *_ = [*sys.argv[1:], "docs/benchmarks.md"]
    measured = {file.removesuffix(".md") for file in os.listdir(folder) if file.endswith(".md")}
    with open(page) as file:
        text = file.read()
    if homeless := measured - {place[1] for place in PLACE.findall(text)}:
        sys.exit(f"{page} has no <!-- table NAME --> for {', '.join(sorted(homeless))}")
    said = f"Measured {datetime.date.today()} at {commit()} on {machine()}."

    def fill(place):
        if place[2] not in measured:
            return place[0]
        with open(os.path.join(folder, f"{place[2]}.md")) as file:
            return f"{place[1]}{file.read()}\n{said}\n{place[4]}"

    with open(page, "w") as file:
        file.write(PLACE.sub(fill, text))
    everything = page.removesuffix(".md") + ".json"
    with open(everything) as file:
        tables = json.load(file)
    for name in measured:
        with open(os.path.join(folder, f"{name}.json")) as file:
            tables[name] = {**json.load(file), "measured": said}
    with open(everything, "w") as file:
        json.dump(tables, file, indent=1, ensure_ascii=False)
        file.write("\n")
    print(f"{page}: {len(measured)} tables")


if __name__ == "__main__":
    main()
