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
import json
import os
import statistics
import tempfile

from comparison import interpreter, parser, photos, run, take_turns

THREADS = 2
BATCH = 2
PHOTOS = 16
PAIRS = [("training step, 2 x 512", False, 512, 512),
         ("detection to RLE, 800/1333", True, 800, 1333)]


# ---------------------------------------------------------------- what both are given

def make_data(source, folder):
    """A COCO folder of the 640x480 photos with the most objects, the same for training and
    validation.
    """
    with open(os.path.join(source, "annotations", "instances_train2017.json")) as f:
        every = json.load(f)
    objects = {}
    for a in every["annotations"]:
        if not a["iscrowd"]:
            objects.setdefault(a["image_id"], []).append(a)
    images = [i for i in every["images"] if (i["width"], i["height"]) == (640, 480)
              and i["id"] in objects]
    images = sorted(images, key=lambda i: -len(objects[i["id"]]))[:PHOTOS]
    images.sort(key=lambda i: i["id"])  # one order on both sides
    every["images"] = images
    every["annotations"] = [a for i in images for a in objects[i["id"]]]
    os.makedirs(os.path.join(folder, "annotations"))
    for split in "train2017", "val2017":
        os.symlink(os.path.join(source, "train2017"), os.path.join(folder, split))
        with open(os.path.join(folder, "annotations", f"instances_{split}.json"), "w") as f:
            json.dump(every, f)


def ours(trainer, folder, steps, inference, short, longest, precision="fp32"):
    sets = {"data.root": f'"{folder}"', "data.short_side": short, "data.max_side": longest,
            "data.flip": 0.0,
            "data.test_short_side": short, "data.test_max_side": longest, "data.batch_size": BATCH,
            "data.test_batch_size": 1, "model.style": '"torchvision"', "train.threads": THREADS,
            "model.weights": f'"{folder}/weights.pth"', "train.precision": f'"{precision}"'}
    command = [trainer, "bench", "model", "configs/coco/mask_rcnn_R50_FPN_1x.toml", "--json",
               "--steps", str(steps)]
    command += ["--inference"] * inference + [a for k, v in sets.items()
                                              for a in ("--set", f"{k}={v}")]
    result, used = run(command)
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def theirs(python, folder, steps, inference, short, longest):
    # The same waiting policy of OpenMP as ours: on a busy machine, spinning threads would only make
    # torchvision slower.
    result, used = run([python, os.path.abspath(__file__), "torchvision", "--peer", folder,
                        "--steps", str(steps), "--short", str(short), "--longest", str(longest)]
                       + ["--inference"] * inference, environment={"GOMP_SPINCOUNT": "1000"})
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


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


def peer_measure(steps, inference, short, longest):
    import itertools
    import resource
    import time
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

    def used():
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime

    batch = 1 if inference else BATCH
    photos = itertools.chain.from_iterable(peer_photos() for _ in itertools.count())
    times, cpu, first = [], [], None
    for _ in range(steps + 2):
        ready = list(itertools.islice(photos, batch))
        start, start_cpu = time.perf_counter(), used()
        last = (detect if inference else train)(ready)
        times.append(time.perf_counter() - start)
        cpu.append(used() - start_cpu)
        first = first or last
    return {"step_s": statistics.median(times[2:]), "cpu_s": statistics.mean(cpu[2:]),
            "first": first,
            "mask_regions": statistics.mean(regions[2:]) if regions else 0}


# ---------------------------------------------------------------- side by side

def medians(answers):
    """name -> s, CPU s, peak MiB."""
    return {name: [statistics.median(r[key] for r in each)
                   for key in ("step_s", "cpu_s", "peak_mib")] for name, each in answers.items()}


def compare(trainer, python, folder, a):
    for title, *setting in PAIRS:
        rounds = take_turns({"millrace": lambda: ours(trainer, folder, a.steps, *setting),
                             "torchvision": lambda: theirs(python, folder, a.steps, *setting)},
                            a.rounds)
        if "torchvision" not in rounds:
            return
        print(f"\n{title}: median of {a.rounds} x {a.steps} steps"
              f"\n  {'':<14}{'s':>9}{'CPU s':>9}{'peak MiB':>10}")
        rows = medians(rounds)
        for name, row in rows.items():
            print(f"  {name:<14}{row[0]:>9.3f}{row[1]:>9.3f}{row[2]:>10.0f}")
        ratio = [own / other for own, other in zip(rows["millrace"], rows["torchvision"])]
        print(f"  {'ours is':<14}{ratio[0]:>8.2f}x{ratio[1]:>8.2f}x{ratio[2]:>9.2f}x")
        for name, each in rounds.items():
            print(f"  {name}, first step: " + ", ".join(f"{k} {v:.4g}" for k,
                                                        v in each[0]["first"].items()))
        regions = rounds["torchvision"][0]["mask_regions"]
        print(f"  mask regions per step (torchvision): {regions:.1f}")
        profile = rounds["millrace"][-1]["profile"]
        print("  our profile: " + ", ".join(f"{k['name']} {100 * k['share']:.1f} %"
                                            for k in profile))
        rest = 1 - sum(k["share"] for k in profile if k["name"] in ("convolution",
                                                                    "matrix product"))
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
        made, why = run([python, os.path.abspath(__file__), "torchvision", "--peer", folder])
        if made is None:
            return print(f"the comparison is left out: {why}")
        compare(a.trainer, python, folder, a)
        compare_precisions(a.trainer, folder, a)


if __name__ == "__main__":
    main()
