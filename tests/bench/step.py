#!/usr/bin/env python3
"""Our Mask R-CNN beside torchvision's: a training step and a detection up to run-length masks,
R50-FPN.

    tests/bench/step.py TRAINER [--rounds 3] [--steps 8]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data) and start
from the same weights, which torchvision writes: random, frozen norms with the statistics of the
photos, class scores spread until a photo gives a hundred detections. Training: 2 images of 512,
stem and C2 frozen, fp32, two threads; the ground truth joins the proposals on both sides and random
proposals hit next to nothing, so that mask regions are the photos' objects, the same number over an
epoch (printed). Detection: 800/1333, one image, until COCO run lengths. torchvision is run by
MILLRACE_PEERS_PYTHON, an interpreter that has it and pycocotools; without it there is nothing to
compare.

The programs run by turns, and medians are printed. On a busy machine look at the seconds of CPU.
"""
import argparse
import itertools
import json
import os
import statistics
import tempfile

import steps
from comparison import interpreter, parser, photos, run, take_turns
from steps import THREADS, make_data, medians, timed

BATCH = 2
PAIRS = [("training step, 2 x 512", False, 512, 512),
         ("detection to RLE, 800/1333", True, 800, 1333)]


def ours(trainer, folder, count, inference, short, longest, precision="fp32"):
    sets = {"data.root": f'"{folder}"', "data.short_side": short, "data.max_side": longest,
            "data.flip": 0.0,
            "data.test_short_side": short, "data.test_max_side": longest, "data.batch_size": BATCH,
            "data.test_batch_size": 1, "model.style": '"torchvision"', "train.threads": THREADS,
            "model.weights": f'"{folder}/weights.pth"', "train.precision": f'"{precision}"'}
    return steps.ours(trainer, "configs/coco/mask_rcnn_R50_FPN_1x.toml", sets, count, inference)


def theirs(python, folder, count, inference, short, longest):
    return steps.theirs(python, __file__,
                        ["--peer", folder, "--steps", str(count), "--short", str(short),
                         "--longest", str(longest)] + ["--inference"] * inference)


# ------------------------------------------------ torchvision, in a process of its own

def peer_model(short, longest):
    import torch
    from torchvision.models.detection import MaskRCNN
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    from torchvision.ops import FrozenBatchNorm2d
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    backbone = resnet_fpn_backbone(backbone_name="resnet50", weights=None,
                                   norm_layer=FrozenBatchNorm2d,
                                   trainable_layers=3)
    return MaskRCNN(backbone, num_classes=len(categories()) + 1, min_size=short, max_size=longest)


def categories():
    with open(os.path.join(peer_folder, "annotations", "instances_train2017.json")) as f:
        return sorted(c["id"] for c in json.load(f)["categories"])


def peer_photos():
    """(image (3, H, W) in 0..1, target) of each photo."""
    import numpy as np
    import torch
    from pycocotools.coco import COCO
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    coco = COCO(os.path.join(peer_folder, "annotations", "instances_train2017.json"))
    label = {c: k + 1 for k, c in enumerate(categories())}
    for i in coco.getImgIds():
        own = coco.loadAnns(coco.getAnnIds(i))
        boxes = torch.tensor([a["bbox"] for a in own], dtype=torch.float32)
        boxes[:, 2:] += boxes[:, :2]
        file = os.path.join(peer_folder, "train2017", coco.imgs[i]["file_name"])
        yield (decode_jpeg(read_file(file), mode=ImageReadMode.RGB).float() / 255,
               {"boxes": boxes, "labels": torch.tensor([label[a["category_id"]] for a in own]),
                "masks": torch.from_numpy(np.stack([coco.annToMask(a) for a in own]))})


def peer_weights():
    """Writes weights.pth: norms with the statistics of the photos, class scores that give
    detections.
    """
    import torch
    from torch import nn
    from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
    model = peer_model(800, 1333).eval()
    free = resnet_fpn_backbone(backbone_name="resnet50", weights=None, norm_layer=nn.BatchNorm2d)
    free.load_state_dict(model.backbone.state_dict(), strict=False)
    for module in free.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the average of all forward passes
    photos = [image for image, _ in peer_photos()]
    with torch.no_grad():
        free.train()(nn.functional.interpolate(torch.stack(photos[:4]) * 4 - 2, size=(384, 512)))
        model.backbone.load_state_dict(free.state_dict(), strict=False)
        for _ in range(12):
            if sum(len(found["labels"]) for found in model(photos[:2])) >= 180:
                break
            model.roi_heads.box_predictor.cls_score.weight *= 2
    torch.save(model.state_dict(), os.path.join(peer_folder, "weights.pth"))
    return {}


def peer_measure(count, inference, short, longest):
    import numpy as np
    import torch
    from pycocotools import mask as rle
    model = peer_model(short, longest)
    model.load_state_dict(torch.load(os.path.join(peer_folder, "weights.pth"), weights_only=True))
    model.train(not inference)
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1e-4,
                                momentum=0.9)
    regions = []
    model.roi_heads.mask_head.register_forward_pre_hook(lambda _, x: regions.append(x[0].shape[0]))

    def train(photos):
        losses = model([image for image, _ in photos], [target for _, target in photos])
        optimizer.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        optimizer.step()
        return {k: v.item() for k, v in losses.items()}

    def detect(photos):
        with torch.no_grad():
            found = model([photos[0][0]])[0]
        masks = (found["masks"] > 0.5).numpy()
        return {"detections": len([rle.encode(np.asfortranarray(m[0, :, :, None], np.uint8))[0]
                                   for m in masks])}

    found = timed(detect if inference else train,
                  itertools.chain.from_iterable(peer_photos() for _ in itertools.count()),
                  1 if inference else BATCH, count)
    return found | {"mask_regions": statistics.mean(regions[2:]) if regions else 0}


# ---------------------------------------------------------------- side by side

def compare(trainer, python, folder, a):
    for title, *setting in PAIRS:
        answers = steps.compare(
            title, {"millrace": lambda: ours(trainer, folder, a.steps, *setting),
                    "torchvision": lambda: theirs(python, folder, a.steps, *setting)},
            a.steps, a.rounds)
        if not answers:
            return
        regions = answers["torchvision"][0]["mask_regions"]
        print(f"  mask regions per step (torchvision): {regions:.1f}")
        rest = 1 - sum(k["share"] for k in answers["millrace"][-1]["profile"]
                       if k["name"] in ("convolution", "matrix product"))
        print(f"  all but convolution and matrix product: {100 * rest:.1f} %")


def compare_precisions(trainer, folder, a):
    title, *setting = PAIRS[0]
    rows = medians(take_turns({p: lambda p=p: ours(trainer, folder, a.steps, *setting, precision=p)
                               for p in ("fp32", "bf16")}, a.rounds))
    if "bf16" not in rows:
        return
    print(f"\n{title}: bf16 beside fp32")
    for name, own, other in zip(("s", "CPU s", "peak MiB"), rows["bf16"], rows["fp32"]):
        print(f"  {name:<10}{own:>10.3f}{other:>10.3f}{own / other:>8.2f}x")


def main():
    global peer_folder
    arguments = parser(__doc__, "trainer", rounds=3)
    arguments.add_argument("--steps", type=int, default=8)
    arguments.add_argument("--peer", help=argparse.SUPPRESS)
    arguments.add_argument("--short", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--longest", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--inference", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer:
        peer_folder = a.peer
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # what libraries print
        result = peer_measure(a.steps, a.inference, a.short,
                              a.longest) if a.short else peer_weights()
        return print(json.dumps(result), file=out)
    data, python = photos(), interpreter()
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = run([python, os.path.abspath(__file__), "peer", "--peer", folder])
        if made is None:
            return print(f"the comparison is left out: {why}")
        compare(a.trainer, python, folder, a)
        compare_precisions(a.trainer, folder, a)


if __name__ == "__main__":
    main()
