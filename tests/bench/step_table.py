#!/usr/bin/env python3
"""Times a training step of every detector by image size, precision and batch size.

    tests/bench/step_table.py TRAINER [--rounds 1] [--steps 2] [--all]

R50-FPN, 80 classes, stem and C2 frozen, SGD, two threads; the images are COCO photos of 640x480
(MILLRACE_TEST_DATA, default ../shared/data), resized to 512 on the longer side or to 800/1333. Mask
R-CNN, Faster R-CNN and RetinaNet are compared with torchvision's with the same weights: with
autocast for bf16, and with a backbone compiled by `torch.compile` (compilation is not timed).
Measured without a peer: Cascade Mask R-CNN, and YOLOX-s and RT-DETR R18-vd with 512 x 512 pixels,
whose packages are measured by yolox_step.py and rtdetr.py.

Without --all, it takes ten minutes on an idle machine and omits most cases with 8 images or a
compiled backbone, and 2 images of 800/1333. MILLRACE_PEERS_PYTHON is a Python that has torchvision
and pycocotools.
"""
import argparse
import itertools
import json
import os
import sys
import tempfile

import rtdetr
import steps
import torchvision_peer
import yolox_step
from comparison import interpreter, parser, photos, run, show, take_turns

COCO = "configs/coco/"
PEERED = {"maskrcnn": ("Mask R-CNN", "mask_rcnn_R50_FPN_1x.toml"),
          "fasterrcnn": ("Faster R-CNN", "faster_rcnn_R50_FPN_1x.toml"),
          "retinanet": ("RetinaNet", "retinanet_R50_FPN_1x.toml")}
ALONE = {"cascade": ("Cascade Mask R-CNN", "cascade_mask_rcnn_R50_FPN_1x.toml"),
         "yolox": ("YOLOX-s", yolox_step.our_sets),
         "rtdetr": ("RT-DETR R18-vd", rtdetr.our_sets)}
TITLES = {name: title for name, (title, _) in (PEERED | ALONE).items()}
SIZES = {"512": (512, 512), "800/1333": (800, 1333)}


def cases(everything):
    """Yields (detector, size, precision, images) in the table's order."""
    for case in itertools.product(TITLES, SIZES, ("fp32", "bf16"), (1, 2, 8)):
        detector, size, precision, images = case
        if detector in ("yolox", "rtdetr") and size != "512":
            continue
        short = (images == 2 if size == "512" else images == 1 and detector in PEERED
                 ) or case in (("maskrcnn", "512", "fp32", 1), ("maskrcnn", "512", "fp32", 8))
        if everything or short:
            yield case


def compiles(case, everything):
    return everything or case in (("maskrcnn", "512", "fp32", 2), ("retinanet", "512", "fp32", 2))


def ours(trainer, folder, case, count, shares_weights):
    detector, size, precision, images = case
    short, longest = SIZES[size]
    sets = {"data.root": f'"{folder}"', "data.flip": 0.0, "data.short_side": short,
            "data.max_side": longest}
    _, config = (PEERED | ALONE)[detector]
    if callable(config):
        config, sets = config(folder, short)
        del sets["model.weights"]
    else:
        config = COCO + config
        if shares_weights:
            sets |= {"model.style": '"torchvision"',
                     "model.weights": f'"{torchvision_peer.weights_file(detector, folder)}"'}
        else:
            sets["unset"] = '["model.weights"]'
    sets |= {"data.batch_size": images, "train.precision": f'"{precision}"',
             "train.threads": steps.THREADS}
    return steps.ours(trainer, config, sets, count, inference=False)


def theirs(folder, case, count, compiled):
    detector, size, precision, images = case
    return steps.theirs(interpreter(), __file__,
                        ["--peer", folder, "--detector", detector, "--size", size, "--precision",
                         precision, "--images", str(images), "--steps", str(count)]
                        + ["--compiled"] * compiled)


def peer_measure(a):
    import torch
    short, longest = SIZES[a.size]
    model = torchvision_peer.loaded(a.detector, a.peer, short, longest).train()
    if a.compiled:
        model.backbone = torch.compile(model.backbone)
    step = torchvision_peer.train_step(model)

    def with_precision(batch):
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            return step(batch)

    every = list(torchvision_peer.examples(a.peer))
    return steps.timed(with_precision, itertools.cycle(every), a.images, a.steps)


def compare(trainer, folder, case, has_peer, a):
    """Measures a case and returns its row."""
    measures = {"millrace": lambda: ours(trainer, folder, case, a.steps, has_peer)}
    if has_peer:
        measures["eager"] = lambda: theirs(folder, case, a.steps, compiled=False)
        if compiles(case, a.all):
            measures["compiled"] = lambda: theirs(folder, case, a.steps, compiled=True)
    found = steps.medians(take_turns(measures, a.rounds))
    detector, size, precision, images = case
    row = [TITLES[detector], f"{images} x {size}", precision]
    for name in "millrace", "eager", "compiled":
        row += [f"{found[name][0]:.2f}", f"{found[name][2]:.0f}"] if name in found else ["", ""]
    own, peers = found.pop("millrace"), list(found.values())
    row += ([f"{own[k] / min(peer[k] for peer in peers):.2f}x" for k in (0, 2)] if peers
            else ["", ""])
    print("  ".join(row), file=sys.stderr, flush=True)
    return row


def main():
    arguments = parser(__doc__, "trainer", rounds=1)
    arguments.add_argument("--steps", type=int, default=2,
                           help="number of timed steps, after two for warm-up")
    arguments.add_argument("--all", action="store_true", help="measure every case; takes hours")
    arguments.add_argument("--peer", help=argparse.SUPPRESS)
    for name in "--detector", "--size", "--precision":
        arguments.add_argument(name, help=argparse.SUPPRESS)
    arguments.add_argument("--images", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--compiled", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer:
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # the output of libraries goes to standard error
        return print(json.dumps(peer_measure(a) if a.size else torchvision_peer.write_weights(
            a.detector, a.peer) or {}), file=out)
    data, python = photos(), interpreter()
    with tempfile.TemporaryDirectory() as folder:
        steps.make_data(data, folder)
        peered = set()
        for detector in PEERED if python else ():
            made, why = run([python, os.path.abspath(__file__), "peer", "--peer", folder,
                             "--detector", detector])
            if made is None:
                print(f"skipping torchvision's {detector}: {why}", file=sys.stderr)
            else:
                peered.add(detector)
        rows = [compare(a.trainer, folder, case, case[0] in peered, a) for case in cases(a.all)]
    return show("step", "A training step, R50-FPN but for the last two, 2 threads",
                ["detector", "images", "precision", "ours, s", "MiB", "torchvision, s", "MiB",
                 "compiled, s", "MiB", "time", "memory"], rows,
                "time and memory: ours as a share of the better of torchvision's, eager and "
                "compiled.")


if __name__ == "__main__":
    main()
