#!/usr/bin/env python3
"""Compares the predictor with torchvision: from an image file to boxes and run lengths, Mask R-CNN
R50-FPN at 800/1333.

    tests/bench/predict.py TRAINER BENCH_PREDICT [--rounds 3] [--photos 6] [--onnx MODEL.onnx]

Weights and photos are those of step.py, with torchvision's names and style on both sides. Measures
one image and batches of four, with one thread and two, in fp32 and bf16; also the time from the
start of the process to the first result, and peak memory. torchvision (eager) is run by
MILLRACE_PEERS_PYTHON, an interpreter that has it and pycocotools. With --onnx, also measures the
exported model in onnxruntime, if that interpreter has it.

Rounds are interleaved, and medians are printed. On a busy machine, compare CPU seconds.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import step
import torchvision_peer
from comparison import interpreter, parser, photos, ratio, run, show, take_turns
from steps import make_data

SETTINGS = list(itertools.product(("fp32", "bf16"), (1, 2), (1, 4)))
ROWS = [("s an image", "image_s"), ("CPU s an image", "cpu_s"), ("first answer, s", "first_s"),
        ("peak MiB", "peak_mib")]
Answer = dict[str, Any]
Measured = tuple[Answer | None, str | None]


def since_start() -> float:
    """Returns the seconds since this process started, including all loading."""
    with open("/proc/self/stat") as f:
        ticks = int(f.read().rsplit(")", 1)[1].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def measured(command: list[str], threads: int) -> Measured:
    result, used = run(command, environment={"OMP_NUM_THREADS": str(threads),
                                             "GOMP_SPINCOUNT": "1000"})
    if result is None:
        return None, used
    return result | {"peak_mib": used["mib"]}, None


def make_model(trainer: str, folder: str) -> str:
    """Returns a model.safetensors with torchvision's weights, written by training at rate 0."""
    sets = {"data.root": f'"{folder}"', "data.short_side": 64, "data.max_side": 96,
            "data.test_short_side": 800, "data.test_max_side": 1333, "data.batch_size": 16,
            "model.style": '"torchvision"', "model.weights": f'"{folder}/maskrcnn.pth"',
            "optimizer.lr": 0.0, "schedule.warmup": '"0 steps"', "train.epochs": 1,
            "schedule.milestones": "[0.5]", "data.resize_style": '"torchvision"',
            "callbacks.evaluate.enabled": "false", "callbacks.pictures.enabled": "false"}
    command = [trainer, "run", "configs/coco/mask_rcnn_R50_FPN_1x.toml", "--out",
               os.path.join(folder, "runs")]
    for key, value in sets.items():
        command += ["--set", f"{key}={value}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    found = [os.path.join(at, name) for at, _, names in os.walk(os.path.join(folder, "runs"))
             for name in names if name == "model.safetensors"]
    return sorted(found)[-1]


# ------------------------------------------------ peers, in separate processes

def torchvision_answers(folder: str, precision: str, threads: int) -> Callable[[list[str]], int]:
    import numpy as np
    import torch
    from pycocotools import mask as rle
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    model = torchvision_peer.loaded("maskrcnn", folder, 800, 1333).eval()
    torch.set_num_threads(threads)

    def answer(files: list[str]) -> int:
        images = [decode_jpeg(read_file(file), mode=ImageReadMode.RGB).float() / 255
                  for file in files]
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16,
                                                    enabled=precision == "bf16"):
            every = model(images)
        for found in every:
            for mask in (found["masks"] > 0.5).numpy():
                rle.encode(np.asfortranarray(mask[0, :, :, None], np.uint8))
        return sum(len(found["labels"]) for found in every)

    return answer


def onnx_answers(model: str, threads: int) -> Callable[[list[str]], int]:
    """The exported model takes one image, so batches are a loop."""
    import numpy as np
    import onnxruntime
    from PIL import Image
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def answer(files: list[str]) -> int:
        found = [session.run(["scores"], {"image": np.asarray(Image.open(file).convert("RGB"))})[0]
                 for file in files]
        return sum(len(scores) for scores in found)

    return answer


def peer(a: argparse.Namespace) -> Answer:
    import resource

    def used() -> float:
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime

    answer = (onnx_answers(a.onnx, a.threads) if a.onnx
              else torchvision_answers(a.peer, a.precision, a.threads))
    files = itertools.cycle(a.files)
    first, cpu, objects = 0.0, 0.0, 0
    times: list[float] = []
    for _ in range(a.turns * len(a.files) // a.batch):
        chosen = list(itertools.islice(files, a.batch))
        start = time.perf_counter()
        objects += answer(chosen)
        if first:
            times.append((time.perf_counter() - start) / a.batch)
        else:
            first, cpu = since_start(), used()
    images = len(times) * a.batch
    return {"first_s": first, "image_s": statistics.median(times),
            "cpu_s": (used() - cpu) / images, "objects": objects / (images + a.batch)}


# ---------------------------------------------------------------- side by side

def measures(a: argparse.Namespace, python: str, folder: str, model: str, files: list[str],
             setting: tuple[str, int, int]) -> Iterator[tuple[str, Callable[[], Measured]]]:
    precision, threads, batch = setting
    turns = max(2, 2 * batch // len(files) + 1)

    def ours() -> Measured:
        return measured([a.program, model, precision, str(threads), str(batch), str(turns), *files],
                        threads)

    def theirs(*more: str) -> Measured:
        return measured([python, os.path.abspath(__file__), "peer", "peer", "--peer", folder,
                         "--precision", precision, "--threads", str(threads), "--batch",
                         str(batch), "--turns", str(turns), *more, "--files", *files], threads)

    yield "millrace", ours
    if python:
        yield "torchvision", theirs
        if a.onnx and precision == "fp32":
            yield "onnxruntime", lambda: theirs("--onnx", os.path.abspath(a.onnx))


def compare(a: argparse.Namespace, python: str, folder: str, model: str, files: list[str]) -> None:
    peers = ["torchvision", "onnxruntime"] if a.onnx else ["torchvision"]
    rows = []
    for setting in SETTINGS:
        precision, threads, batch = setting
        answers = take_turns(dict(measures(a, python, folder, model, files, setting)), a.rounds)
        what = (f"{precision}, {threads} thread{'s' * (threads > 1)}, "
                f"{'one image' if batch == 1 else f'batches of {batch}'}: ")
        for title, key in ROWS:
            values = {name: [one[key] for one in each] for name, each in answers.items()}
            rows.append([what + title, f"{statistics.median(values['millrace']):.3f}"])
            for name in peers:
                rows[-1] += ([f"{statistics.median(values[name]):.3f}",
                              ratio(values[name], values["millrace"])] if name in values
                             else ["", ""])
        found = {name: each[0]["objects"] for name, each in answers.items()}
        print("objects per image: " + ", ".join(f"{name} {n:.1f}" for name, n in found.items()),
              flush=True)
    show("predict", f"Detection of one image by the predictor library, medians of {a.rounds}",
         ["", "millrace", *(word for name in peers for word in (name, "times ours"))], rows)


def main() -> None:
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("program", metavar="bench_predict")
    arguments.add_argument("--photos", type=int, default=6)
    arguments.add_argument("--onnx", help="model for onnxruntime, exported from the same weights")
    for name, kind in (("peer", str), ("precision", str), ("threads", int), ("batch", int),
                       ("turns", int)):
        arguments.add_argument("--" + name, type=kind, help=argparse.SUPPRESS)
    arguments.add_argument("--files", nargs="*", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer:
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # the output of libraries goes to standard error
        print(json.dumps(peer(a)), file=out)
        return
    data, python = photos(), interpreter()
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = run([python or sys.executable, os.path.abspath(step.__file__), "peer",
                         "--peer", folder])
        if made is None:
            sys.exit(f"cannot make weights with torchvision: {why}")
        with open(os.path.join(folder, "annotations", "instances_val2017.json")) as f:
            names = [image["file_name"] for image in json.load(f)["images"]]
        files = [os.path.join(folder, "val2017", name) for name in names[:a.photos]]
        compare(a, python, folder, make_model(a.trainer, folder), files)


if __name__ == "__main__":
    main()
