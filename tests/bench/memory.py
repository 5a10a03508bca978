#!/usr/bin/env python3
"""Measures the peak memory of training with 1, 100, 1,000 and 4,000 objects per image.

    tests/bench/memory.py TRAINER [--steps 3] [--only maskrcnn]

Each detector trains for a few steps on COCO photos of 640x480 (MILLRACE_TEST_DATA, default:
../shared/data) and writes a checkpoint. The peak is read from record.json. Detectors with regions
start from ImageNet weights, so that they have proposals, and treat nearly all of these as
foreground.
"""
import argparse
import copy
import json
import os
import subprocess
import tempfile

from comparison import photos
from steps import make_data

COCO = "configs/coco/"
PLAIN = {"unset": '["data.stages"]'}  # images are only resized and padded
IMAGENET = os.path.abspath(os.path.join(os.environ.get("MILLRACE_TEST_DATA", "../shared/data"),
                                        "weights", "R50_C1-C4_imagenet_msra_fp16.npz"))
TRAINED = {"model.weights": f'"{IMAGENET}"', "model.force_weights": "true"}
REGIONS = {**TRAINED, "model.roi.fg_iou_thresh": "[0.0001]"}
CASCADE = {**TRAINED, "model.roi.fg_iou_thresh": "[0.0001, 0.0001, 0.0001]"}
YOLOX = {**PLAIN, "data.divisor": 32, "model.random_size": "[]", "schedule.type": '"constant"',
         "unset": '["data.stages", "schedule"]'}
DETECTORS = {  # name -> configuration, settings
    "maskrcnn": (COCO + "mask_rcnn_R50_FPN_1x.toml", REGIONS),
    "fasterrcnn": (COCO + "faster_rcnn_R50_FPN_1x.toml", REGIONS),
    "cascadercnn": (COCO + "cascade_mask_rcnn_R50_FPN_1x.toml", CASCADE),
    "retinanet": (COCO + "retinanet_R50_FPN_1x.toml", {}),
    "yolox": (COCO + "yolox_s.toml", YOLOX),
    "rtdetr": (COCO + "rtdetr_r18vd.toml", PLAIN),
}
TRAIN_ONLY = {"callbacks.evaluate.enabled": "false", "data.val": '""'}


def trained(trainer, folder, config, sets, steps):
    """Trains for a few steps and returns the entry in record.json; ends the program on failure."""
    sets = {"data.root": f'"{folder}"', "model.weights": '""', "train.max_steps": steps,
            "train.epochs": 1000, "train.threads": 2, "callbacks.pictures.enabled": "false", **sets}
    with tempfile.TemporaryDirectory() as runs:
        done = subprocess.run(
            [trainer, "run", config, "--out", runs]
            + [word for key, value in sets.items()
               for word in ("--set", f"unset={value}" if key == "unset" else f"{key}={value}")],
            capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{config}: {done.stderr.strip().splitlines()[-1]}")
        (run,) = os.listdir(runs)
        with open(os.path.join(runs, run, "record.json")) as f:
            return json.load(f)["starts"][0]


def crowded(folder, count, out):
    """Makes a data set of the photos with `count` objects each: their own, repeated and moved."""
    with open(os.path.join(folder, "annotations", "instances_train2017.json")) as f:
        every = json.load(f)
    objects = []
    for image in every["images"]:
        own = [a for a in every["annotations"] if a["image_id"] == image["id"]]
        for k in range(count):
            one = copy.deepcopy(own[k % len(own)])
            one["id"] = len(objects) + 1
            side = 24 + k % 40
            x, y = (37 * k) % (640 - side), (53 * k) % (480 - side)
            one["bbox"], one["area"] = [x, y, side, side], side * side
            one["segmentation"] = [[x, y, x + side, y, x + side, y + side, x, y + side]]
            objects.append(one)
    every["annotations"] = objects
    os.makedirs(os.path.join(out, "annotations"))
    for split in "train2017", "val2017":
        os.symlink(os.path.join(folder, split), os.path.join(out, split))
        with open(os.path.join(out, "annotations", f"instances_{split}.json"), "w") as f:
            json.dump(every, f)


def compare_objects(trainer, folder, names, steps):
    print("| detector | objects in an image | peak, MiB |\n|---|---|---|")
    for name in names:
        config, sets = DETECTORS[name]
        for count in 1, 100, 1000, 4000:
            with tempfile.TemporaryDirectory() as out:
                crowded(folder, count, out)
                own = {**sets, **TRAIN_ONLY, "data.short_side": 320, "data.max_side": 640,
                       "data.batch_size": 2}
                used = trained(trainer, out, config, own, steps)["used"]
            print(f"| {name} | {count:,} | {used['peak_memory_mib'][0]:,} |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trainer")
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--only", choices=DETECTORS)
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_data(photos(), folder)
        compare_objects(a.trainer, folder, [a.only] if a.only else list(DETECTORS), a.steps)


main()
