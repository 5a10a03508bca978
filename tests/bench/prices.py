#!/usr/bin/env python3
"""What determinism and other promises cost: each as a share of a training step.

    tests/bench/prices.py TRAINER [--config configs/maskrcnn.toml] [--steps 40] [--rounds 3]
                          [--set K=V]... [--only NAME]

Each price is the difference between two trainings that differ in one promise, in seconds and in
seconds of CPU, as a share of a step. The two run by turns, once a round; start and end of a program
are taken off by a training of one step. Medians are printed, with the lowest and the highest round.
On a busy machine look at the seconds of CPU.
"""
import contextlib
import os
import signal
import statistics
import subprocess
import tempfile

from comparison import parser, spent

TRAIN_ONLY = {"callbacks.evaluate.enabled": "false", "callbacks.pictures.enabled": "false",
              "callbacks.checkpoint.enabled": "false", "train.epochs": 1e9}


def prices(a, folder):
    """name -> settings without and with it, and how many times it is paid in a training."""
    half = a.batch // 2

    def evaluations(mode):
        return {"callbacks.evaluate.enabled": "true", "callbacks.evaluate.mode": f'"{mode}"',
                "callbacks.evaluate.every": f'"{a.steps // 2} steps"'}

    return {
        "deterministic operators": ({"train.deterministic": "false"},
                                    {"train.deterministic": "true"}, a.steps),
        "sync_bn in one process": ({"model.backbone.norm": '"bn"'},
                                   {"model.backbone.norm": '"sync_bn"'}, a.steps),
        f"accumulate: 2 x {half} instead of {a.batch}": (
            {"data.batch_size": a.batch},
            {"data.batch_size": half, "optimizer.accumulate": 2}, a.steps),
        "micro_batch = 1 beside a batch": (
            {}, {"train.micro_batch": 1, "train.threads": 1, "data.test_batch_size": 1}, a.steps),
        "a data server on this machine": (
            {}, {"data.source": f'["ipc://{folder}/server"]'}, a.steps),
        "a checkpoint": ({}, {"callbacks.checkpoint.enabled": "true",
                                 "callbacks.checkpoint.every": f'"{max(1, a.steps // 10)} steps"'},
                            10),
        "a checkpoint in memory": ({}, {"callbacks.memory_checkpoint.every": '"1 step"'}, a.steps),
        "ledger": ({}, {"callbacks.ledger.enabled": "true"}, a.steps),
        "an evaluation": ({}, evaluations("inline"), 2),
        "an evaluation, scored in background": ({}, evaluations("score_in_background"), 2),
        "an evaluation in the background": ({}, evaluations("background"), 2),
    }


def train(a, folder, settings, steps):
    """What a training of so many steps took; ends the program if it fails."""
    words = [a.trainer, "run", a.config, "--output", os.path.join(folder, "runs")]
    own = dict(one.split("=", 1) for one in a.set)
    for key, value in (TRAIN_ONLY | own | settings | {"train.max_steps": steps}).items():
        words += ["--set", f"{key}={value}"]
    text, used = spent(words)
    if text is None:
        raise SystemExit(f"{' '.join(words)}\n{used}")
    return used


@contextlib.contextmanager
def server(a, folder, settings):
    """A data server, where the settings name one."""
    if "data.source" not in settings:
        yield
        return
    words = [a.trainer, "serve", a.config, "--bind", f"ipc://{folder}/server"]
    for one in a.set:
        words += ["--set", one]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def steps_alone(a, folder, settings):
    """What the steps of a training took, without its start and end."""
    with server(a, folder, settings):
        first, whole = (train(a, folder, settings, steps) for steps in (1, a.steps + 1))
    return {key: whole[key] - first[key] for key in ("wall", "cpu")}


def shares(differences, step):
    shown = sorted(100 * difference / step for difference in differences)
    return f"{statistics.median(shown):+8.1f} % ({shown[0]:+.1f} to {shown[-1]:+.1f})"


def main():
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("--config", default="configs/maskrcnn.toml")
    arguments.add_argument("--steps", type=int, default=40)
    arguments.add_argument("--batch", type=int, default=4, help="data.batch_size")
    arguments.add_argument("--set", action="append", default=[])
    arguments.add_argument("--only", default="", help="the prices whose names have this in them")
    a = arguments.parse_args()
    a.set.append(f"data.batch_size={a.batch}")
    print(f"{'':<36}{'of a step':>26}{'of its CPU time':>28}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (without, having, times) in prices(a, folder).items():
            if a.only not in name:
                continue
            rounds = [(steps_alone(a, folder, without), steps_alone(a, folder, having))
                      for _ in range(a.rounds)]
            row = ""
            for key in ("wall", "cpu"):
                step = statistics.median(own[key] for own, _ in rounds) / a.steps
                row += f"{shares([(b[key] - c[key]) / times for c, b in rounds], step):>28}"
            print(f"{name:<34}{row}", flush=True)


if __name__ == "__main__":
    main()
