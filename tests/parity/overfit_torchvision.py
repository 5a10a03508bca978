"""Overfits torchvision's R18-FPN Mask R-CNN to a few photos, so that its detections can be compared
with those of our `trainer eval`.

    python overfit_torchvision.py SHARED_DATA OUT [--photos 4] [--steps 120] [--side 160]

SHARED_DATA contains coco_mini, weights and goldens/scripts, whose functions build and train the
model. Writes

- two data sets in COCO's layout: OUT/sized, photos already resized to the model's input size, and
  OUT/photos, the original photos;
- OUT/model.safetensors, torchvision's state dict;
- for each data set, <set>.toml, our recipe of the same model and data, <set>.detections.json,
  torchvision's detections, and <set>.ap.json, their metrics by pycocotools.
"""

import argparse
import json
import shutil
import sys
from pathlib import Path

SPLIT = "train2017"
ANCHORS = (16, 32, 64, 128, 256)
# Settings of torchvision's model that are not its defaults, under its names and ours.
SETTINGS = {
    "rpn_pre_nms_top_n_train": ("rpn.pre_nms_top_n_train", 300),
    "rpn_pre_nms_top_n_test": ("rpn.pre_nms_top_n_test", 300),
    "rpn_post_nms_top_n_train": ("rpn.post_nms_top_n_train", 150),
    "rpn_post_nms_top_n_test": ("rpn.post_nms_top_n_test", 150),
    "box_batch_size_per_image": ("roi.batch_size_per_image", 64),
}


def choose(annotations, count):
    """Returns the first `count` photos that have two to eight objects and no crowd."""
    chosen = []
    for image in annotations["images"]:
        own = [a for a in annotations["annotations"] if a["image_id"] == image["id"]]
        if 2 <= len(own) <= 8 and not any(a["iscrowd"] for a in own):
            chosen.append((image, own))
    return chosen[:count]


def write_set(root, chosen, categories, source, side):
    """Writes a COCO folder with the chosen photos, resized to a shorter side of `side` unless it is
    None."""
    (root / "annotations").mkdir(parents=True)
    (root / SPLIT).mkdir()
    images, annotations = [], []
    for image, own in chosen:
        old = image["width"], image["height"]
        new = tuple(round(x * side / min(old)) for x in old) if side else old
        x, y = new[0] / old[0], new[1] / old[1]
        file = root / SPLIT / image["file_name"]
        if side:
            photo = Image.open(source / image["file_name"]).convert("RGB")
            photo.resize(new, Image.BILINEAR).save(file, quality=95)
        else:
            shutil.copy(source / image["file_name"], file)
        images.append(dict(image, width=new[0], height=new[1]))
        for a in own:
            polygons = [[v * (x, y)[i % 2] for i, v in enumerate(p)] for p in a["segmentation"]]
            box = [v * (x, y)[i % 2] for i, v in enumerate(a["bbox"])]
            annotations.append(dict(a, segmentation=polygons, bbox=box, area=a["area"] * x * y))
    content = dict(images=images, annotations=annotations, categories=categories)
    (root / "annotations" / f"instances_{SPLIT}.json").write_text(json.dumps(content))


def config(root, side):
    lines = [
        "[data]",
        f'root = "{root}"',
        f'val = "{SPLIT}"',
        f"short_side = {side}",
        f"max_side = {2 * side}",
        'resize_style = "torchvision"',
        "reduced_decoding = false",
        "[model]",
        'type = "maskrcnn"',
        'style = "torchvision"',
        'backbone.type = "resnet18"',
        f"anchors.sizes = {list(ANCHORS)}",
    ]
    return "\n".join(lines + [f"{ours} = {value}" for ours, value in SETTINGS.values()]) + "\n"


def train(model, data, steps, batch=2, lr=5e-4, warmup=10):
    parameters = [p for p in model.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, lr=lr)
    images = [ref.to_chw01(data.image(i)) for i in range(len(data))]
    targets = [data.target(i) for i in range(len(data))]
    model.train()
    for step in range(steps):
        rate = lr * min(1, (step + 1) / warmup) * (0.1 if step >= steps * 0.8 else 1)
        for group in adam.param_groups:
            group["lr"] = rate
        rows = [(step * batch + k) % len(images) for k in range(batch)]
        losses = model([images[i] for i in rows], [targets[i] for i in rows])
        adam.zero_grad(set_to_none=True)
        sum(losses.values()).backward()
        torch.nn.utils.clip_grad_norm_(parameters, 10)
        adam.step()
        if step % 20 == 19:
            print(step + 1, {k: round(v.item(), 3) for k, v in losses.items()}, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("shared_data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--photos", type=int, default=4)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--side", type=int, default=160)
    a = parser.parse_args()
    sys.path.insert(0, str(a.shared_data / "goldens" / "scripts"))
    import refcommon as ref
    import torch
    from PIL import Image
    from safetensors.torch import save_file

    mini = a.shared_data / "coco_mini"
    annotations = json.loads((mini / "annotations" / f"instances_{SPLIT}.json").read_text())
    chosen = choose(annotations, a.photos)
    used = {o["category_id"] for _, own in chosen for o in own}
    categories = [c for c in annotations["categories"] if c["id"] in used]
    ids = [c["id"] for c in categories]
    sets = {}
    for name, side in (("sized", a.side), ("photos", None)):
        write_set(a.out / name, chosen, categories, mini / SPLIT, side)
        (a.out / f"{name}.toml").write_text(config((a.out / name).resolve(), a.side))
        sets[name] = ref.CocoSet(str(a.out / name), SPLIT, ids, False)

    arguments = {theirs: value for theirs, (_, value) in SETTINGS.items()}
    model = ref.build_r18(len(ids) + 1, ANCHORS, min_size=a.side, max_size=2 * a.side, **arguments)
    ref.calibrate_layer4(model, [sets["sized"].image(i) for i in range(len(chosen))])
    torch.manual_seed(1)
    train(model, sets["sized"], a.steps)

    save_file(model.state_dict(), a.out / "model.safetensors")
    for name, data in sets.items():
        detections, _ = ref.detect(model, data)
        scores = ref.coco_eval(data.json, detections, ids)
        (a.out / f"{name}.detections.json").write_text(json.dumps(detections))
        (a.out / f"{name}.ap.json").write_text(json.dumps(scores))
        print(name, {kind: round(figures["AP"], 4) for kind, figures in scores.items()})
