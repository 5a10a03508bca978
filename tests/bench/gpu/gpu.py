#!/usr/bin/env python3
"""Measures the speed of a GPU and of training Mask R-CNN R50-FPN at 800/1333 on it.

    tests/bench/gpu/gpu.py BIN [--only PART]... [--data DIR] [--small] [--device D --plugin FILE]

BIN is the folder of the programs, build/release/bin. The parts:

    device       matrix products, copies, small kernels, backbone and FPN as one graph, and where a
                 step's time goes (bench_gpu); the timeline is build/bench/gpu-trace.json
    model        `trainer bench model` in bf16, tf32 and fp32 with batches in memory
    flow         `trainer bench dataflow` and training that reads and decodes images of --data (a
                 data set in COCO's layout) or of the sample data set
    torchvision  the same step in torchvision, eager and compiled, if python3 has it

Weights are random: pixels close to 0 keep proposals at their anchors, and a low threshold makes
enough of them foreground for the full number of regions and masks per image. If a part fails, the
others still run, and the exit code is 1.
"""
import argparse
import json
import os
import pathlib
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from comparison import run, show, spent  # noqa: E402

ROOT = HERE.parent.parent.parent
GIB = 2**30


def text(value):
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def table(title, rows):
    """Prints a table; each row is column -> value."""
    if rows:
        name = "gpu-" + "".join(c if c.isalnum() else "-" for c in title.lower())
        show(name, title, list(rows[0]), [[text(value) for value in row.values()] for row in rows])


class Measuring:
    def __init__(self, a, folder):
        self.small, self.on_cuda = a.small, a.device == "cuda"
        self.bin, self.data, self.folder = pathlib.Path(a.bin), a.data, pathlib.Path(folder)
        self.named = ["--device", a.device, "--plugin", a.plugin]
        self.device = [f"plugins=['{a.plugin}']", f"train.device='{a.device}'"]
        self.trainer = str(self.bin / "trainer")
        self.failed = []

    def answer(self, what, command):
        """Returns the JSON in the last line of a command; if it fails, prints a message and returns
        None.
        """
        found, used = run(command)
        if found is None:
            self.failed.append(what)
            print(f"{what} failed: {used}", file=sys.stderr)
        return found

    def recipe(self, name, more):
        """Writes a configuration, R50-FPN at 800/1333 or a small network; returns its path."""
        short, longest = (96, 160) if self.small else (800, 1333)
        narrow = """batch_size_per_image = 32
[model.backbone]
type = "resnet18"
width = 16
[model.fpn]
out_channels = 16
[model.box]
fc_dim = 32
[model.mask]
conv_dim = 8
""" if self.small else ""
        file = self.folder / f"{name}.toml"
        file.write_text(f"""base = "{ROOT}/configs/coco/mask_rcnn_R50_FPN_1x.toml"
[optimizer]
lr = 1e-9
[model]
weights = ""
pixel_std = [3000.0, 3000.0, 3000.0]
[model.roi]
fg_iou_thresh = [0.05]
{narrow}[data]
short_side = {short}
max_side = {longest}
{more}""")
        return str(file)

    def in_memory(self, batch):
        width, height = (160, 96) if self.small else (1333, 800)
        return self.recipe("memory", f"""classes = ["a", "b", "c"]
batch_size = {batch}
[[data.sources]]
type = "fake"
count = 256
width = {width}
height = {height}
""")

    def measure_device(self):
        trace = self.folder / "trace.json" if self.small else ROOT / "build/bench/gpu-trace.json"
        trace.parent.mkdir(parents=True, exist_ok=True)
        tables = self.answer("bench_gpu", [
            str(self.bin / "bench_gpu"), *self.named, *["--small"] * self.small,
            "--recipe", self.in_memory(1 if self.small else 8), "--trace", str(trace)])
        for title, rows in (tables or {}).items():
            table(title, rows)

    def measure_model(self):
        rows = []
        for precision in ["bf16", *["tf32"] * self.on_cuda, "fp32"]:
            for batch in [1] if self.small else [8, 12, 4, 2, 1]:
                sets = [*self.device, f"train.precision='{precision}'"]
                found = self.answer(f"{precision}, batch {batch}", [
                    self.trainer, "bench", "model", self.in_memory(batch), "--json", "--steps",
                    "1" if self.small else "10", *[w for s in sets for w in ("--set", s)]])
                if found:
                    rows.append({"precision": precision, "batch": batch,
                                 "images/s": found["images_per_s"],
                                 "ms a step": 1e3 * found["step_s"],
                                 "ms of the host's processors": 1e3 * found["cpu_s"],
                                 "tensors, GiB": found.get("peak_device_bytes", 0) / GIB,
                                 "reserved, GiB": found.get("peak_device_reserved_bytes", 0) / GIB,
                                 "first loss": found["first"]["loss"]})
        table("Training, data in memory", rows)

    def measure_flow(self):
        data = self.data
        if not data:
            data = str(self.folder / "data")
            spent([self.trainer, "sample", "--out", data, "--train", "16" if self.small else "1024",
                   "--val", "4"])
        batch = 1 if self.small else 8
        file = self.recipe("flow", f'root = "{data}"\nbatch_size = {batch}\n')
        alone = self.answer("the data flow", [self.trainer, "bench", "dataflow", file, "--json",
                                              "--seconds", "1" if self.small else "8"])
        if alone:
            table("The data flow alone", [{"images/s": alone["images_per_s"],
                                           "images a CPU s": alone["images_per_cpu_s"],
                                           "bottleneck": alone["bottleneck"]}])
        every = 1 if self.small else 20
        sets = [*self.device, "train.precision='bf16'",
                f"train.max_steps={2 if self.small else 60}",
                f"callbacks.throughput.every={every} steps", f"callbacks.log.every={every} steps",
                *[f"callbacks.{name}.enabled=false" for name in
                  ("evaluate", "pictures", "checkpoint")]]
        out, used = spent([self.trainer, "run", file, "--out", str(self.folder / "runs"),
                           *[w for s in sets for w in ("--set", s)]])
        if out is None:
            self.failed.append("flow")
            return print(f"training failed: {used}", file=sys.stderr)
        lines = (self.folder / "runs/flow-1/metrics.jsonl").read_text().splitlines()
        last = [json.loads(line) for line in lines if "time/images_per_s" in line][-1]
        table("Training with the real flow, bf16", [{
            "images/s": last["time/images_per_s"], "ms a step": 1e3 * last["time/step_s"],
            "ms waited for data": 1e3 * last["time/data_wait_s"],
            "share of the time": last["time/data_wait_share"]}])

    def measure_torchvision(self):
        version, why = spent(["python3", "-c", "import torch, torchvision as tv; "
                              "print(torch.__version__, tv.__version__)"])
        if version is None:
            return print(f"skipping torchvision: {why}", file=sys.stderr)
        rows = []
        for mode in "eager", "compiled":
            for batch in [1] if self.small else [8, 12]:
                small = ["--short", "64", "--long", "96", "--steps", "1"] if self.small else []
                found, why = run(["python3", str(HERE / "torchvision_step.py"), "--mode", mode,
                                  "--batch", str(batch), "--device",
                                  "cuda" if self.on_cuda else "cpu", *small])
                if found is None:
                    print(f"skipping torchvision, {mode}: {why}", file=sys.stderr)
                    continue
                rows.append({"mode": mode, "batch": batch, "images/s": found["images_per_s"],
                             "ms a step": 1e3 * found["step_s"],
                             "peak memory of tensors, GiB": found["peak_gib"]})
        table(f"torchvision's Mask R-CNN, bf16, data in memory ({version.strip()})", rows)


def main():
    parts = {name.removeprefix("measure_"): part for name, part in vars(Measuring).items()
             if name.startswith("measure_")}
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("bin")
    arguments.add_argument("--only", action="append", choices=parts, default=[])
    arguments.add_argument("--data", help="data set in COCO layout")
    arguments.add_argument("--small", action="store_true",
                           help="only check that everything runs; the values are meaningless")
    arguments.add_argument("--device", default="cuda")
    arguments.add_argument("--plugin", default="millrace_cuda.so")
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measuring = Measuring(a, folder)
        for name, part in parts.items():
            if not a.only or name in a.only:
                part(measuring)
    sys.exit(bool(measuring.failed))


if __name__ == "__main__":
    main()
