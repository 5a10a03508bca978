"""Measures one peer of the data flow; dataflow.py runs this in a Python that has the peers.

    flow_peers.py NAME SETTINGS    SETTINGS: JSON, [{"title", "data", "short", ...}, ...]

Prints one JSON object: title -> {"images_per_cpu_s", "value" (images/s), "check", "mib",
"first_s"}. "mib" is the peak of all processes so far, so settings must be ordered by memory use.
"first_s" is the time from the end of the imports to the first batch.

The stages are those of MILLRACE_PEERS (flow_*.py), which must be in PYTHONPATH. This file adds
SPDL's threads, torchdata's threads with OpenCV, and mosaics, which none of these programs provides:
four images joined with OpenCV, as in the package yolox (MosaicDetection), in the threads or
processes of each program.
"""
import functools
import json
import os
import sys
import time
from types import SimpleNamespace

import common  # from here on, standard output goes to standard error
import cv2
import numpy as np
import process_memory

SIDE = 640  # width and height of a mosaic


# ------------------------------------------------ the work for one image or one batch

def resized(record, a, rng):
    """Decodes, mirrors and resizes with OpenCV; returns image, boxes, masks or None."""
    import flow_opencv_serial
    return flow_opencv_serial.load(record, a, rng)


def warp(rng):
    """Returns a random matrix from the canvas to the result, relative to their centres: rotation of
    up to 10 degrees, scale 1/2 to 3/2, shear of up to 2 degrees, translation of up to a tenth.
    """
    angle, shear = np.radians(rng.uniform(-10, 10)), np.tan(np.radians(rng.uniform(-2, 2, 2)))
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    matrix = np.array([[1, shear[0]], [shear[1], 1]]) @ turn * rng.uniform(0.5, 1.5)
    moved = (0.5 + rng.uniform(-0.1, 0.1, 2)) * SIDE - matrix @ (SIDE, SIDE)
    return np.concatenate([matrix, moved[:, None]], 1)


def mosaic(records, i, rng):
    """Returns image (640, 640, 3) and boxes (n, 4): record i and three random records around a
    random centre, warped and randomly mirrored.
    """
    canvas = np.full((2 * SIDE, 2 * SIDE, 3), 114, np.uint8)
    centre_x, centre_y = (rng.uniform(0.5, 1.5, 2) * SIDE).astype(int)
    boxes = []
    for k, j in enumerate([i, *rng.integers(len(records), size=3)]):
        image = cv2.imread(records[j]["file"], cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION)
        scale = min(SIDE / image.shape[0], SIDE / image.shape[1])
        w, h = int(image.shape[1] * scale), int(image.shape[0] * scale)
        image = cv2.resize(image, (w, h), interpolation=cv2.INTER_LINEAR)
        x, y = centre_x - w * (k % 2 == 0), centre_y - h * (k < 2)
        x1, y1, x2, y2 = max(x, 0), max(y, 0), min(x + w, 2 * SIDE), min(y + h, 2 * SIDE)
        canvas[y1:y2, x1:x2] = image[y1 - y:y2 - y, x1 - x:x2 - x]
        boxes.append(records[j]["boxes"] * scale + (x, y, x, y))
    boxes = np.clip(np.concatenate(boxes), 0, 2 * SIDE)
    matrix = warp(rng)
    image = cv2.warpAffine(canvas, matrix, (SIDE, SIDE), borderValue=(114, 114, 114))
    corners = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2) @ matrix[:, :2].T + matrix[:, 2]
    boxes = np.clip(np.concatenate([corners.min(1), corners.max(1)], 1), 0, SIDE)
    boxes = boxes[(boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])]
    if rng.random() < 0.5:
        image, boxes = cv2.flip(image, 1), np.stack([SIDE - boxes[:, 2], boxes[:, 1],
                                                     SIDE - boxes[:, 0], boxes[:, 3]], 1)
    return image, boxes, None


def load(records, a, i):
    rng = np.random.default_rng()
    return mosaic(records, i, rng) if a.mosaic else resized(records[i], a, rng)


def padded(samples):
    """Pads [(image, boxes, masks or None)]; returns images NHWC, sizes, boxes, masks or None."""
    import flow_opencv_serial
    return flow_opencv_serial.collect(samples)


def group(records, a, ids):
    return padded([load(records, a, i) for i in ids])


def groups(records, a):
    return common.aspect_batches(records, a.batch, np.random.default_rng(a.seed))


# ------------------------------------------------ the programs, with OpenCV's stages

def by_nodes(a, records):
    import torch
    from torchdata.nodes import IterableWrapper, ParallelMapper
    torch.set_num_threads(1)
    loader = ParallelMapper(IterableWrapper(groups(records, a)),
                            functools.partial(group, records, a), a.workers, in_order=False)
    loader.reset()
    yield from loader


class Samples:
    def __init__(self, records, a):
        self.records, self.a = records, a

    def __getitem__(self, i):
        return load(self.records, self.a, i)

    def __len__(self):
        return len(self.records)


def as_tensors(samples):
    import torch
    images, sizes, boxes, masks = padded(samples)
    return torch.from_numpy(images), sizes, [torch.from_numpy(b) for b in boxes], masks


def by_data_loader(a, records):
    from torch.utils.data import DataLoader
    loader = DataLoader(Samples(records, a), batch_sampler=groups(records, a),
                        num_workers=a.workers, collate_fn=as_tensors)
    for images, sizes, boxes, masks in loader:
        yield images.numpy(), sizes, [b.numpy() for b in boxes], masks


def by_tensorpack(a, records):
    from tensorpack.dataflow import DataFromGenerator, MultiThreadMapData
    flow = MultiThreadMapData(DataFromGenerator(lambda: ([ids] for ids in groups(records, a))),
                              a.workers, lambda ids: [group(records, a, ids[0])],
                              buffer_size=2 * a.workers)
    flow.reset_state()
    for batch in flow:
        yield batch[0]


def by_spdl(a, records):
    from spdl.pipeline import PipelineBuilder
    pipeline = PipelineBuilder().add_source(groups(records, a)).pipe(
        functools.partial(group, records, a), concurrency=a.workers).add_sink(4).build(
        num_threads=a.workers)
    with pipeline.auto_stop():
        yield from pipeline


# name -> its module and variant in MILLRACE_PEERS or None; the function that runs OpenCV's stages
# in the program, which is used for mosaics, and for all settings if there is no module
PEERS = {
    "torchdata nodes": (("flow_torch", "nodes"), by_nodes),
    "torchdata nodes, OpenCV": (None, by_nodes),
    "torch DataLoader, OpenCV": (("flow_torch", "cv2"), by_data_loader),
    "tensorpack threads": (("flow_tensorpack", "thread"), by_tensorpack),
    "SPDL threads, OpenCV": (None, by_spdl),
    "DALI": (("flow_dali", "grouped"), None),
}


# Modules that are otherwise imported when batches are made. They are imported first, since imports
# do not count as the start of a flow.
LATE = {"torchdata nodes": ["torchdata.nodes"],
        "torchdata nodes, OpenCV": ["flow_opencv_serial", "torch", "torchdata.nodes"],
        "tensorpack threads": ["flow_opencv_serial"],
        "SPDL threads, OpenCV": ["flow_opencv_serial", "spdl.pipeline"]}


def main():
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    own, mosaics = PEERS[name]
    module = __import__(own[0]) if own else None
    for late in LATE.get(name, ()):
        __import__(late)
    cv2.setNumThreads(1)
    memory, results = process_memory.Peak(every=1), {}
    for setting in settings:
        a = SimpleNamespace(workers=2, batch=4, seed=1, antialias=False, split="train",
                            variant=own[1] if own else "", **setting)
        if a.mosaic and not mosaics:
            continue
        began = time.perf_counter()
        records = common.load_records(a.data, a.split)
        batches = mosaics(a, records) if a.mosaic or not module else module.batches(a, records)
        first = next(batches)
        first_s = time.perf_counter() - began
        del first
        result = {}
        if a.seconds:
            result = common.measure(batches, a.seconds, len(records), warm_seconds=0.3)
        batches.close()
        result["mib"] = max(memory.look(), common.peak_rss_mib())
        results[a.title] = result | {"first_s": first_s}
    print(json.dumps(results), file=common._stdout, flush=True)
    os._exit(0)  # even if threads and processes of the peer still wait


if __name__ == "__main__":
    main()
