#!/usr/bin/env python3
"""Measures the cost of determinism and other guarantees, as a share of a training step.

    tests/bench/prices.py TRAINER [--config configs/maskrcnn.toml] [--steps 40] [--rounds 3]
                          [--set K=V]... [--only NAME]

Each cost is the difference between two training runs that differ in one guarantee, in seconds and
in CPU seconds, as a share of a step. The two run alternately, once per round; the time of start and
end is measured by a run of one step and subtracted. Medians are printed, with the lowest and the
highest round. On a busy machine, compare CPU seconds.
"""
import contextlib
import itertools
import os
import signal
import statistics
import subprocess
import tempfile

from comparison import parser, show, spent

TRAIN_ONLY = {"callbacks.evaluate.enabled": "false", "callbacks.pictures.enabled": "false",
              "callbacks.checkpoint.enabled": "false", "train.epochs": 1e9}
RETINANET = "configs/retinanet.toml"
PORTS = itertools.count(5870)


class Case:
    """A cost: settings without and with a guarantee, which is needed `times` times in a run."""

    def __init__(self, without, having, times, config=None, ranks=1):
        self.without, self.having, self.times = without, having, times
        self.config, self.ranks = config, ranks


def prices(a, folder):
    """Returns name -> Case."""
    half = a.batch // 2
    accumulate = ({"data.batch_size": a.batch},
                  {"data.batch_size": half, "optimizer.accumulate": 2}, a.steps)
    checkpoints = {"callbacks.checkpoint.enabled": "true",
                   "callbacks.checkpoint.every": f'"{max(1, a.steps // 10)} steps"'}

    def norm(name):
        return {"model.backbone.norm": f'"{name}"', "model.fpn.norm": f'"{name}"'}

    def evaluations(mode):
        return {"callbacks.evaluate.enabled": "true", "callbacks.evaluate.mode": f'"{mode}"',
                "callbacks.evaluate.every": f'"{a.steps // 2} steps"'}

    def server(address, keys=False):
        return {"data.source": f'["{address}"]'} | ({
            "data.source_key": f"{folder}/trainer.key",
            "data.source_server_key": f"{folder}/server.pub"} if keys else {})

    tcp = f"tcp://127.0.0.1:{next(PORTS)}", f"tcp://127.0.0.1:{next(PORTS)}"
    return {
        "deterministic operators": Case({"train.deterministic": "false"},
                                        {"train.deterministic": "true"}, a.steps),
        "shuffling of all images": Case({"data.shuffle_window": 1}, {"data.shuffle_window": 0},
                                        a.steps),
        "sync_bn beside bn, 1 process": Case(norm("bn"), norm("sync_bn"), a.steps),
        "sync_bn beside bn, 2 ranks": Case(norm("bn"), norm("sync_bn"), a.steps, ranks=2),
        f"exact accumulation: 2 x {half} beside {a.batch}": Case(*accumulate),
        "the same of RetinaNet": Case(*accumulate, config=RETINANET),
        "micro_batch = 1 beside a batch": Case(
            {}, {"train.micro_batch": 1, "train.threads": 1, "data.test_batch_size": 1}, a.steps),
        "a data server, ipc": Case({}, server(f"ipc://{folder}/server"), a.steps),
        "a data server, TCP": Case({}, server(tcp[0]), a.steps),
        "keys (CURVE) with it": Case(server(tcp[0]), server(tcp[1], keys=True), a.steps),
        "ledger": Case({}, {"callbacks.ledger.enabled": "true"}, a.steps),
        "a checkpoint in memory each step": Case(
            {}, {"callbacks.memory_checkpoint.every": '"1 step"'}, a.steps),
        "a checkpoint": Case({}, checkpoints, 10),
        "an evaluation": Case({}, evaluations("inline"), 2),
        "an evaluation, scored in background": Case({}, evaluations("score_in_background"), 2),
        "an evaluation in the background": Case({}, evaluations("background"), 2),
    }


def train(a, case, folder, settings, steps):
    """Returns the resources of a training run; ends the program if it fails."""
    words = [a.trainer, "run", case.config or a.config, "--out", os.path.join(folder, "runs")]
    if case.ranks > 1:
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(case.ranks), *words]
    own = dict(one.split("=", 1) for one in a.set)
    for key, value in (TRAIN_ONLY | own | settings | {"train.max_steps": steps}).items():
        words += ["--set", f"{key}={value}"]
    text, used = spent(words)
    if text is None:
        raise SystemExit(f"{' '.join(words)}\n{used}")
    return used


@contextlib.contextmanager
def server(a, case, folder, settings):
    """Runs a data server if the settings name one."""
    if "data.source" not in settings:
        yield
        return
    words = [a.trainer, "serve", case.config or a.config,
             "--bind", settings["data.source"].strip('[]"')]
    if "data.source_key" in settings:
        words += ["--key", f"{folder}/server.key", "--allow", f"{folder}/trainer.pub"]
    for one in a.set:
        words += ["--set", one]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def steps_alone(a, case, folder, settings):
    """Returns the time of a run's steps, without its start and end."""
    with server(a, case, folder, settings):
        first, whole = (train(a, case, folder, settings, steps) for steps in (1, a.steps + 1))
    return {key: whole[key] - first[key] for key in ("wall", "cpu")}


def shares(differences, step):
    shown = sorted(100 * difference / step for difference in differences)
    return f"{statistics.median(shown):+.1f} % ({shown[0]:+.1f} to {shown[-1]:+.1f})"


def row(a, name, case, folder):
    rounds = [[steps_alone(a, case, folder, settings) for settings in (case.without, case.having)]
              for _ in range(a.rounds)]
    cells = [name]
    for key in ("wall", "cpu"):
        step = statistics.median(own[key] for own, _ in rounds) / a.steps
        cells.append(shares([(b[key] - c[key]) / case.times for c, b in rounds], step))
    print("  ".join(cells), flush=True)
    return cells


def main():
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("--config", default="configs/maskrcnn.toml")
    arguments.add_argument("--steps", type=int, default=40)
    arguments.add_argument("--batch", type=int, default=4, help="data.batch_size")
    arguments.add_argument("--set", action="append", default=[])
    arguments.add_argument("--only", default="", help="measure only costs whose name contains this")
    a = arguments.parse_args()
    a.trainer = os.path.abspath(a.trainer)
    a.set.append(f"data.batch_size={a.batch}")
    with tempfile.TemporaryDirectory() as folder:
        for side in "server", "trainer":
            subprocess.run([a.trainer, "serve", "--keygen", f"{folder}/{side}"], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        rows = [row(a, name, case, folder) for name, case in prices(a, folder).items()
                if a.only in name]
    show("prices", f"What promises cost, of a step of {a.config} ({a.batch} images)",
         ["", "of a step", "of its CPU time"], rows,
         f"Median of {a.rounds} pairs of {a.steps} steps, with the lowest and the highest.")


if __name__ == "__main__":
    main()
