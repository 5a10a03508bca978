#!/usr/bin/env python3
"""Compares our Mask R-CNN R50-FPN with torchvision's: a training step, and a detection up to
run-length masks.

    tests/bench/step.py TRAINER [--rounds 3] [--steps 8]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data) and start
from the same weights, which torchvision writes: random weights, frozen norms with the photos'
statistics, class scores scaled until a photo has about a hundred detections. Training: 2 images of
512, stem and C2 frozen, fp32, two threads. Both add the ground truth to the proposals, and random
proposals match almost no object, so that the mask regions are the photos' objects: the same number
over an epoch (printed). Detection: 800/1333, one image, up to COCO run lengths.
MILLRACE_PEERS_PYTHON is a Python that has torchvision and pycocotools; without it the comparison is
skipped.

Rounds are interleaved, and medians are printed. On a busy machine, compare CPU seconds.
"""
import argparse
import itertools
import json
import os
import statistics
import tempfile

import steps
import torchvision_peer
from comparison import interpreter, parser, photos, run, take_turns
from steps import THREADS, make_data, medians, timed

BATCH = 2
PAIRS = [("maskrcnn-step", "Training step of 2 x 512 beside torchvision", False, 512, 512),
         ("maskrcnn-detection", "Detection of one image at 800/1333 up to run lengths, beside "
          "torchvision and pycocotools", True, 800, 1333)]


def ours(trainer, folder, count, inference, short, longest, precision="fp32"):
    sets = {"data.root": f'"{folder}"', "data.short_side": short, "data.max_side": longest,
            "data.flip": 0.0,
            "data.test_short_side": short, "data.test_max_side": longest, "data.batch_size": BATCH,
            "data.test_batch_size": 1, "model.style": '"torchvision"', "train.threads": THREADS,
            "model.weights": f'"{folder}/maskrcnn.pth"', "train.precision": f'"{precision}"'}
    return steps.ours(trainer, "configs/coco/mask_rcnn_R50_FPN_1x.toml", sets, count, inference)


def theirs(python, folder, count, inference, short, longest):
    return steps.theirs(python, __file__,
                        ["--peer", folder, "--steps", str(count), "--short", str(short),
                         "--longest", str(longest)] + ["--inference"] * inference)


# ------------------------------------------------ torchvision, in a separate process

def peer_measure(folder, count, inference, short, longest):
    import numpy as np
    import torch
    from pycocotools import mask as rle
    model = torchvision_peer.loaded("maskrcnn", folder, short, longest)
    model.train(not inference)
    regions = []
    model.roi_heads.mask_head.register_forward_pre_hook(lambda _, x: regions.append(x[0].shape[0]))

    def detect(photos):
        with torch.no_grad():
            found = model([photos[0][0]])[0]
        masks = (found["masks"] > 0.5).numpy()
        return {"detections": len([rle.encode(np.asfortranarray(m[0, :, :, None], np.uint8))[0]
                                   for m in masks])}

    every = itertools.chain.from_iterable(torchvision_peer.examples(folder)
                                          for _ in itertools.count())
    found = timed(detect if inference else torchvision_peer.train_step(model), every,
                  1 if inference else BATCH, count)
    return found | {"mask_regions": statistics.mean(regions[2:]) if regions else 0}


# ---------------------------------------------------------------- side by side

def compare(trainer, python, folder, a):
    for name, title, *setting in PAIRS:
        answers = steps.compare(
            name, title, {"millrace": lambda: ours(trainer, folder, a.steps, *setting),
                    "torchvision": lambda: theirs(python, folder, a.steps, *setting)},
            a.steps, a.rounds)
        if not answers:
            return
        regions = answers["torchvision"][0]["mask_regions"]
        print(f"  mask regions per step (torchvision): {regions:.1f}")
        rest = 1 - sum(k["share"] for k in answers["millrace"][-1]["profile"]
                       if k["name"] in ("convolution", "matrix product"))
        print(f"  all except convolution and matrix product: {100 * rest:.1f} %")


def compare_precisions(trainer, folder, a):
    _, title, *setting = PAIRS[0]
    rows = medians(take_turns({p: lambda p=p: ours(trainer, folder, a.steps, *setting, precision=p)
                               for p in ("fp32", "bf16")}, a.rounds))
    if "bf16" not in rows:
        return
    print(f"\n{title}: bf16 beside fp32")
    for name, own, other in zip(("s", "CPU s", "peak MiB"), rows["bf16"], rows["fp32"]):
        print(f"  {name:<10}{own:>10.3f}{other:>10.3f}{own / other:>8.2f}x")


def main():
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("--steps", type=int, default=8)
    arguments.add_argument("--peer", help=argparse.SUPPRESS)
    arguments.add_argument("--short", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--longest", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--inference", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer:
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # the output of libraries goes to standard error
        result = peer_measure(a.peer, a.steps, a.inference, a.short,
                              a.longest) if a.short else torchvision_peer.write_weights(
                                  "maskrcnn", a.peer)
        return print(json.dumps(result or {}), file=out)
    data, python = photos(), interpreter()
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = run([python, os.path.abspath(__file__), "peer", "--peer", folder])
        if made is None:
            return print(f"skipping the comparison: {why}")
        compare(a.trainer, python, folder, a)
        compare_precisions(a.trainer, folder, a)


if __name__ == "__main__":
    main()
