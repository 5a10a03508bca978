#!/usr/bin/env python3
"""Times training steps of torchvision's Mask R-CNN R50-FPN on generated images, for gpu.py.

    torchvision_step.py [--mode eager|compiled] [--batch 8] [--precision bf16] [--device cuda]

Prints one JSON object: step_s (median), images_per_s, peak_gib. Images are 800 x 1333 with 8
objects each, and are on the device before the clock starts. Stem and C2 are frozen; SGD with
momentum, channels last, autocast, pixels close to 0 and the foreground threshold are as in gpu.py's
measurement of `trainer bench model`. "compiled" compiles the backbone with its FPN and the heads,
whose shapes repeat; the rest of the model has control flow on the host and stays eager.
"""
import argparse
import json
import statistics
import time

import torch
from torchvision.models.detection import maskrcnn_resnet50_fpn

OBJECTS = 8
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--mode", choices=["eager", "compiled"], default="eager")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--precision", choices=TYPES, default="bf16")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--short", type=int, default=800)
    parser.add_argument("--long", type=int, default=1333)
    parser.add_argument("--steps", type=int, default=15)
    return parser.parse_args()


def made_up(a):
    """Returns (images, targets): noise with rectangles as objects."""
    generator = torch.Generator().manual_seed(1)
    images, targets = [], []
    for _ in range(a.batch):
        images.append(torch.rand((3, a.short, a.long), generator=generator).to(a.device))
        corner = torch.rand((OBJECTS, 2), generator=generator) * torch.tensor(
            [a.long * 0.6, a.short * 0.6])
        side = 16 + torch.rand((OBJECTS, 2), generator=generator) * torch.tensor(
            [a.long * 0.3, a.short * 0.3])
        boxes = torch.cat([corner, corner + side], 1)
        masks = torch.zeros((OBJECTS, a.short, a.long), dtype=torch.uint8)
        for mask, (x1, y1, x2, y2) in zip(masks, boxes.int().tolist()):
            mask[y1:y2, x1:x2] = 1
        labels = torch.randint(1, 4, (OBJECTS,), generator=generator)
        targets.append({"boxes": boxes.to(a.device), "masks": masks.to(a.device),
                        "labels": labels.to(a.device)})
    return images, targets


def main():
    a = arguments()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    model = maskrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=4,
                                  min_size=a.short, max_size=a.long, image_std=[12.0] * 3,
                                  box_fg_iou_thresh=0.05, box_bg_iou_thresh=0.05)
    for part in model.backbone.body.conv1, model.backbone.body.layer1:
        part.requires_grad_(False)
    model = model.to(a.device, memory_format=torch.channels_last).train()
    if a.mode == "compiled":
        model.backbone = torch.compile(model.backbone)
        model.rpn.head = torch.compile(model.rpn.head)
        model.roi_heads.box_head = torch.compile(model.roi_heads.box_head)
        model.roi_heads.mask_head = torch.compile(model.roi_heads.mask_head, dynamic=True)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1e-9,
                                momentum=0.9)
    images, targets = made_up(a)
    on_gpu = a.device.startswith("cuda")
    times = []
    for _ in range(5 + a.steps):
        began = time.perf_counter()
        with torch.autocast(a.device.split(":")[0], TYPES[a.precision],
                            enabled=a.precision != "fp32"):
            total = sum(model(images, targets).values())
        optimizer.zero_grad(set_to_none=True)
        total.backward()
        optimizer.step()
        total.item()  # waits for the device, as reading the losses does
        if on_gpu:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    step = statistics.median(times[5:])
    peak = torch.cuda.max_memory_allocated() / 2**30 if on_gpu else 0
    print(json.dumps({"step_s": step, "images_per_s": a.batch / step, "peak_gib": peak}))


if __name__ == "__main__":
    main()
