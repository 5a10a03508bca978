"""Shared by comparisons with peers: arguments, interleaved measurements, tables, and the search for
peers."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time


def parser(doc, program, rounds):
    """Returns a parser with the measured program, if any, and --rounds."""
    result = argparse.ArgumentParser(description=doc,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    if program:
        result.add_argument(program)
    result.add_argument("--rounds", type=int, default=rounds)
    return result


def spent(command, cwd=None, environment=None):
    """Returns what `command` prints and the resources that the process used, {"wall": s, "cpu": s,
    "mib": peak}; or None and the reason.
    """
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        child = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                 env={**os.environ, **(environment or {})})
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        out.seek(0), err.seek(0)
        if status:
            return None, (err.read().strip().splitlines() or [f"ended with status {status}"])[-1]
        return (out.read(),
                {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "mib": used.ru_maxrss / 1024})


def run(command, cwd=None, environment=None):
    """Returns the JSON object in the last line that `command` prints and the resources that the
    process used; or None and the reason.
    """
    text, used = spent(command, cwd, environment)
    return (None, used) if text is None else (json.loads(text.splitlines()[-1]), used)


def take_turns(measures, rounds, once=()):
    """Calls each measure once per round, those in `once` in the first round only; returns name ->
    answers. A measure returns an answer and None, or None and the reason; then it is omitted. If
    the first measure, ours, returns None, the program ends.
    """
    first, answers = next(iter(measures)), {}
    for k in range(rounds):
        for name, measure in list(measures.items()):
            if k > 0 and name in once:
                continue
            answer, why = measure()
            if answer is not None:
                answers.setdefault(name, []).append(answer)
            elif name == first:
                sys.exit(f"{name}: {why}")
            else:
                print(f"skipping {name}: {why}", file=sys.stderr)
                del measures[name]
                answers.pop(name, None)
    return answers


def show(name, title, header, rows, note=""):
    """Prints a table of strings as Markdown that is aligned for a terminal, with `note` below it.
    If `make bench` has set the folder MILLRACE_BENCH_TABLES, also writes NAME.md and NAME.json
    there, for docs/benchmarks.md and docs/benchmarks.json (tables.py).
    """
    widths = [max(3, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]

    def line(cells):
        return "| " + " | ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                                 for i, (cell, width) in enumerate(zip(cells, widths))) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    text = "\n".join([line(header), line(rule), *map(line, rows)] + ["", note] * bool(note))
    print(f"\n{title}\n\n{text}", flush=True)
    if folder := os.environ.get("MILLRACE_BENCH_TABLES"):
        with open(os.path.join(folder, f"{name}.md"), "w") as out:
            out.write(f"**{title}**\n\n{text}\n")
        with open(os.path.join(folder, f"{name}.json"), "w") as out:
            json.dump({"title": title, "header": header, "rows": rows}, out)


def ratio(others, own):
    """Returns "MEDIANx (MINIMUM to MAXIMUM)" of a peer's values over ours in the same round."""
    each = sorted(other / mine for other, mine in zip(others, own))
    return f"{statistics.median(each):.2f}x ({each[0]:.2f} to {each[-1]:.2f})"


def interpreter():
    """Returns the Python that has the peers, MILLRACE_PEERS_PYTHON; prints a message and returns ""
    if it is not set.
    """
    python = os.environ.get("MILLRACE_PEERS_PYTHON", "")
    if not python:
        print("skipping the peers; set MILLRACE_PEERS_PYTHON to a Python that has them",
              file=sys.stderr)
    return python


def photos():
    """Returns the folder of COCO photos in MILLRACE_TEST_DATA (default ../shared/data); ends the
    program if it does not exist.
    """
    folder = os.path.abspath(os.path.join(os.environ.get("MILLRACE_TEST_DATA", "../shared/data"),
                                          "coco_mini"))
    if not os.path.isdir(folder):
        sys.exit(f"photos not found in {folder}; set MILLRACE_TEST_DATA")
    return folder


def peers_folder(script):
    """Returns the folder of a peer's script, MILLRACE_PEERS (default ../shared/peers); if the
    script cannot be run, prints a message and returns None.
    """
    folder = os.path.abspath(os.environ.get("MILLRACE_PEERS", "../shared/peers"))
    if not os.path.exists(os.path.join(folder, script)):
        print(f"skipping the peers; set MILLRACE_PEERS to the folder of {script}",
              file=sys.stderr)
        return None
    return folder if interpreter() else None
