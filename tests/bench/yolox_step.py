#!/usr/bin/env python3
"""Compares our YOLOX with the package `yolox`: a training step and a detection up to boxes.

    tests/bench/yolox_step.py TRAINER [--rounds 2] [--steps 6]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data), padded to a
square, and start from the same weights, which the package writes: random, with scores that yield
hundreds of detections. Training: 4 images of 416, SGD, fp32, two threads. Detection: one image of
640, up to the boxes after NMS. MILLRACE_PEERS_PYTHON is a Python that has torch, torchvision and
`yolox` (see tests/plugins/yolox/reference.py); without it the comparison is skipped.

Rounds are interleaved, and medians are printed. On a busy machine, compare CPU seconds.
"""
import itertools
import json
import os
import sys

from steps import THREADS, compare_package, timed

BATCH = 4


def our_sets(folder, size):
    return "configs/coco/yolox_s.toml", {
        "data.root": f'"{folder}"', "unset": '["data.stages"]', "data.flip": 0.0,
        "data.short_side": size, "data.max_side": size, "data.divisor": size,
        "data.batch_size": BATCH, "data.test_batch_size": 1, "model.random_size": "[]",
        "train.threads": THREADS, "model.weights": f'"{folder}/weights.pth"'}


# ------------------------------------------------ the package, in a separate process

def peer_model():
    import torch
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "yolox"))
    from reference import package
    models, boxes = package()
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    channels = [256, 512, 1024]
    model = models.YOLOX(models.YOLOPAFPN(0.33, 0.5, in_channels=channels),
                         models.YOLOXHead(80, 0.5, in_channels=channels))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps, module.momentum = 1e-3, 0.03
    model.head.initialize_biases(0.09)
    return model, boxes


def peer_photos(folder, size):
    """Yields (BGR image (3, size, size), (G, 5) class, box centre and box size) of each photo."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    with open(os.path.join(folder, "annotations", "instances_train2017.json")) as f:
        every = json.load(f)
    label = {c: k for k, c in enumerate(sorted(c["id"] for c in every["categories"]))}
    for image in every["images"]:
        file = os.path.join(folder, "train2017", image["file_name"])
        pixels = decode_jpeg(read_file(file), mode=ImageReadMode.RGB).flip(0).float()
        scale = size / max(pixels.shape[1:])
        small = torch.nn.functional.interpolate(pixels[None], scale_factor=scale,
                                                mode="bilinear")[0]
        square = torch.full((3, size, size), 114.0)
        square[:, :small.shape[1], :small.shape[2]] = small
        own = [a for a in every["annotations"] if a["image_id"] == image["id"]]
        yield square, torch.tensor([[label[a["category_id"]], x + w / 2, y + h / 2, w, h]
                                    for a in own for x, y, w, h in
                                    [[scale * side for side in a["bbox"]]]])


def peer_measure(folder, steps, inference, size):
    import torch
    model, boxes = peer_model()
    model.load_state_dict(torch.load(os.path.join(folder, "weights.pth"),
                                     weights_only=True)["model"])
    model.train(not inference)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4, momentum=0.9, nesterov=True)

    def train(batch):
        labels = torch.zeros(len(batch), 120, 5)
        for i, (_, objects) in enumerate(batch):
            labels[i, :len(objects)] = objects
        losses = model(torch.stack([image for image, _ in batch]), labels)
        optimizer.zero_grad(set_to_none=True)
        losses["total_loss"].backward()
        optimizer.step()
        return {k: float(losses[k]) for k in ("iou_loss", "conf_loss", "cls_loss")}

    def detect(batch):
        with torch.no_grad():
            found = boxes.postprocess(model(batch[0][0][None]), 80, 0.01, 0.65)[0]
        return {"detections": 0 if found is None else len(found)}

    return timed(detect if inference else train, itertools.cycle(list(peer_photos(folder, size))),
                 1 if inference else BATCH, steps)


def write_weights(folder):
    import torch
    torch.save({"model": peer_model()[0].state_dict()}, os.path.join(folder, "weights.pth"))


if __name__ == "__main__":
    compare_package(__doc__, __file__, "yolox", our_sets, write_weights, peer_measure)
