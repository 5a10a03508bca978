#!/usr/bin/env python3
"""Measures start times: commands that only print, and training up to the end of the first step.

    tests/bench/start.py TRAINER [--rounds 5] [--images 118287]

Training uses configs/maskrcnn.toml with the sample data set, and with annotations of COCO's size
(471 MB) that repeat its photos; annotations are read for the first time, then from their cache. The
seconds are those in the log line about the first step, counted from the start of the process.
Prints medians, minima and maxima.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile

from comparison import parser, show, spent
from large_annotations import sample_with_annotations

CONFIG = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs/maskrcnn.toml")


def answers(trainer, folder):
    """Returns name -> command for the commands that only print."""
    faulty = os.path.join(folder, "faulty.toml")
    with open(faulty, "w") as file:
        file.write("[model\n")
    return {"trainer --help": [trainer, "--help"], "trainer list": [trainer, "list"],
            "a configuration that is not TOML": [trainer, "run", faulty]}


def answer(words):
    """Returns seconds and peak MiB of a command, for any exit code."""
    _, used = spent(["sh", "-c", '"$@" >/dev/null 2>&1 || :', "sh", *words])
    return used["wall"], used["mib"]


def first_step(trainer, folder, data, cache):
    """Returns the seconds to the end of the first step, and peak MiB."""
    words = [trainer, "run", CONFIG, "--out", os.path.join(folder, "runs"),
             "--set", "train.max_steps=1"]
    for key in "evaluate", "pictures", "checkpoint", "report":
        words += ["--set", f"callbacks.{key}.enabled=false"]
    words += ["--set", f"data.root={data}"]
    log = os.path.join(folder, "log")
    text, used = spent(["sh", "-c", f'"$@" 2>{log}', "sh", *words],
                       environment={"MILLRACE_CACHE": cache})
    with open(log) as file:
        lines = file.read()
    if text is None:
        sys.exit(lines)
    return float(re.search(r"first step\D*([0-9.]+) s", lines)[1]), used["mib"]


def row(name, measured):
    seconds = sorted(one[0] for one in measured)
    return [name, f"{statistics.median(seconds):.3f}", f"{seconds[0]:.3f} to {seconds[-1]:.3f}",
            f"{statistics.median(one[1] for one in measured):.0f}"]


def main():
    arguments = parser(__doc__, "trainer", rounds=5)
    arguments.add_argument("--images", type=int, default=118287)
    a = arguments.parse_args()
    trainer = os.path.abspath(a.trainer)
    with tempfile.TemporaryDirectory() as folder:
        rows = [row(name, [answer(words) for _ in range(a.rounds)])
                for name, words in answers(trainer, folder).items()]
        small, large = (os.path.join(folder, name) for name in ("sample", "large"))
        subprocess.run([trainer, "sample", "--out", small, "--train", "2048", "--val", "128"],
                       check=True, stdout=subprocess.DEVNULL)
        sample_with_annotations(trainer, large, a.images, objects=7, size=4000 * a.images)
        for name, data in (("the sample data set", small), (f"{a.images} images", large)):
            caches = [os.path.join(folder, f"cache-{os.path.basename(data)}-{k}")
                      for k in range(a.rounds)]
            for when in "the first time", "from the cache":
                rows.append(row(f"first step, {name}, {when}",
                                [first_step(trainer, folder, data, cache) for cache in caches]))
    show("start", "Starts, in seconds", ["", "s", "least to most", "peak MiB"], rows)


if __name__ == "__main__":
    main()
