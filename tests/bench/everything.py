#!/usr/bin/env python3
"""Runs all benchmarks, writes their tables to docs/benchmarks.md, and shows changes: `make bench`.

    tests/bench/everything.py BIN [--only NAME]...

BIN is the folder of the programs, build/release/bin. The output of each is in build/bench/NAME.log.
If one fails, the exit code is 1, and the tables of the others are still written.
"""
import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = "build/bench"
# name -> its command; {} is the folder of the programs
BENCHMARKS = {
    "start": ["start.py", "{}/trainer"],
    "evaluation": ["coco_eval.py", "{}/trainer"],
    "dataflow": ["dataflow.py", "{}/trainer"],
    "serving": ["serving.py", "{}/bench_serving"],
    "ops": ["ops.py", "{}/bench_ops"],
    "maskrcnn": ["step.py", "{}/trainer"],
    "yolox": ["yolox_step.py", "{}/trainer"],
    "rtdetr": ["rtdetr.py", "{}/trainer"],
    "steps": ["step_table.py", "{}/trainer"],
    "predict": ["predict.py", "{}/trainer", "{}/bench_predict", "--rounds", "2"],
    "growth": ["growth.py", "{}/trainer"],
    "prices": ["prices.py", "{}/trainer", "--rounds", "2"],
}


def measure(name, words, environment):
    """Runs one benchmark. Returns True if it succeeded."""
    print(f"{name} ...", end=" ", flush=True)
    began = time.monotonic()
    with open(f"{OUT}/{name}.log", "w") as log:
        done = subprocess.run([sys.executable, os.path.join(HERE, words[0]), *words[1:]],
                              env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    took = f"{(time.monotonic() - began) / 60:.1f} min"
    print(took if done.returncode == 0 else
          f"failed after {took}, exit code {done.returncode}; see {OUT}/{name}.log", flush=True)
    return done.returncode == 0


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bin")
    arguments.add_argument("--only", action="append", choices=BENCHMARKS, default=[])
    a = arguments.parse_args()
    os.makedirs(OUT, exist_ok=True)
    for table in os.listdir(OUT):
        if table.endswith((".md", ".json")):
            os.remove(os.path.join(OUT, table))
    environment = {**os.environ, "MILLRACE_BENCH_TABLES": os.path.abspath(OUT)}
    folder = os.path.abspath(a.bin)
    good = [measure(name, [word.format(folder) for word in words], environment)
            for name, words in BENCHMARKS.items() if not a.only or name in a.only]
    filled = subprocess.run([sys.executable, os.path.join(HERE, "tables.py"), OUT])
    subprocess.run([sys.executable, "scripts/docs/peer_chart.py"])
    subprocess.run([sys.executable, os.path.join(HERE, "changes.py")])
    sys.exit(0 if all(good) and filled.returncode == 0 else 1)


if __name__ == "__main__":
    main()
