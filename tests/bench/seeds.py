#!/usr/bin/env python3
"""Measures the spread of a recipe's scores: trains it with several seeds, with all instructions of
this processor and with AVX2 only.

usage: tests/bench/seeds.py TRAINER OUT [--seeds 5] [--config configs/maskrcnn.toml] [--set K=V]...

Trains one run at a time on all cores: two hours for five seeds of the sample recipe on two cores.
If it is killed, the next start resumes it. Prints a row per run, and the mean and standard
deviation of the last scores with each instruction set.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess

INSTRUCTIONS = {"native": {}, "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2"}}


def last_scores(run: pathlib.Path) -> dict:
    """Returns the scores of the last evaluation in metrics.jsonl."""
    scores = {}
    for line in run.joinpath("metrics.jsonl").read_text().splitlines():
        scores.update({k: v for k, v in json.loads(line).items() if k in ("bbox/AP", "segm/AP")})
    return scores


def train(arguments, kind: str, seed: int) -> dict:
    out = arguments.out / f"{kind}-{seed}"
    command = [arguments.trainer, "run", arguments.config, "--resume=auto", "--out", str(out),
               "--set", f"train.seed={seed}"]
    for setting in arguments.set:
        command += ["--set", setting]
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "output.txt", "a") as log:
        subprocess.run(command, env=os.environ | INSTRUCTIONS[kind], stdout=log, stderr=log,
                       check=True)
    return last_scores(next(path.parent for path in sorted(out.glob("*/metrics.jsonl"))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--config", default="configs/maskrcnn.toml")
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()

    found = {kind: [] for kind in INSTRUCTIONS}
    # Both instruction sets of a seed run before the next seed, so that partial output is useful.
    for seed in range(1, arguments.seeds + 1):
        for kind in INSTRUCTIONS:
            found[kind].append(train(arguments, kind, seed))
            print(f"{kind:8} seed {seed}  " + "  ".join(f"{k} {v:.4f}" for k,
                                                        v in found[kind][-1].items()), flush=True)
    for kind, scores in found.items():
        for name in scores[0]:
            values = [score[name] for score in scores]
            spread = statistics.stdev(values) if len(values) > 1 else float("nan")
            print(f"{kind:8} {name}: mean {statistics.mean(values):.4f}, "
                  f"standard deviation {spread:.4f} of {len(values)}")


if __name__ == "__main__":
    main()
