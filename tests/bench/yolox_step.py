#!/usr/bin/env python3
"""Our YOLOX beside the package `yolox`: a training step and a detection up to boxes, YOLOX-s.

    tests/bench/yolox_step.py TRAINER [--rounds 2] [--steps 6]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data), padded to a
square, and start from the same weights, which the package writes: random, with scores that give
hundreds of detections. Training: 4 images of 416, SGD, fp32, two threads. Detection: one image of
640, until the boxes after NMS. The package is run by MILLRACE_PEERS_PYTHON, an interpreter that has
torch, torchvision and `yolox` (see tests/yolox/reference.py); without it there is nothing to
compare.

The programs run by turns, and medians are printed. On a busy machine look at the seconds of CPU.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile

from comparison import interpreter, parser, photos, run, take_turns
from step import THREADS, make_data, medians

BATCH = 4
PAIRS = [("training step, 4 x 416", False, 416), ("detection, 640", True, 640)]


def ours(trainer, folder, steps, inference, size):
    sets = {"data.root": f'"{folder}"', "unset": '["data.stages"]', "data.flip": 0.0,
            "data.short_side": size, "data.max_side": size, "data.divisor": size,
            "data.batch_size": BATCH, "data.test_batch_size": 1, "model.random_size": "[]",
            "train.threads": THREADS, "model.weights": f'"{folder}/weights.pth"'}
    result, used = run([trainer, "bench", "model", "configs/coco/yolox_s.toml", "--json",
                        "--steps", str(steps)] + ["--inference"] * inference
                       + [a for k, v in sets.items() for a in ("--set", f"{k}={v}")])
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def theirs(python, folder, steps, inference, size):
    result, used = run([python, "-W", "ignore", os.path.abspath(__file__), "peer", "--peer", folder,
                        "--steps", str(steps), "--size", str(size)] + ["--inference"] * inference,
                       environment={"GOMP_SPINCOUNT": "1000"})
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


# ------------------------------------------------ the package, in a process of its own

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
    """(BGR image (3, size, size), (G, 5) class and box by centre) of each photo."""
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
    import itertools
    import resource
    import time
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

    def used():
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime

    every = list(peer_photos(folder, size))
    ready = itertools.cycle(every)
    times, cpu, first = [], [], None
    for _ in range(steps + 2):
        batch = list(itertools.islice(ready, 1 if inference else BATCH))
        start, start_cpu = time.perf_counter(), used()
        last = (detect if inference else train)(batch)
        times.append(time.perf_counter() - start)
        cpu.append(used() - start_cpu)
        first = first or last
    return {"step_s": statistics.median(times[2:]), "cpu_s": statistics.mean(cpu[2:]),
            "first": first}


# ---------------------------------------------------------------- side by side

def compare(trainer, python, folder, a):
    for title, *setting in PAIRS:
        rounds = take_turns({"millrace": lambda: ours(trainer, folder, a.steps, *setting),
                             "yolox": lambda: theirs(python, folder, a.steps, *setting)}, a.rounds)
        if "yolox" not in rounds:
            return
        print(f"\n{title}: median of {a.rounds} x {a.steps} steps"
              f"\n  {'':<14}{'s':>9}{'CPU s':>9}{'peak MiB':>10}")
        rows = medians(rounds)
        for name, row in rows.items():
            print(f"  {name:<14}{row[0]:>9.3f}{row[1]:>9.3f}{row[2]:>10.0f}")
        ratio = [own / other for own, other in zip(rows["millrace"], rows["yolox"])]
        print(f"  {'ours is':<14}{ratio[0]:>8.2f}x{ratio[1]:>8.2f}x{ratio[2]:>9.2f}x")
        for name, each in rounds.items():
            print(f"  {name}, first step: " + ", ".join(f"{k} {v:.4g}" for k,
                                                        v in each[0]["first"].items()))
        print("  our profile: " + ", ".join(f"{k['name']} {100 * k['share']:.1f} %"
                                            for k in rounds["millrace"][-1]["profile"]))


def main():
    arguments = parser(__doc__, "trainer", rounds=2)
    arguments.add_argument("--steps", type=int, default=6)
    arguments.add_argument("--peer", help=argparse.SUPPRESS)
    arguments.add_argument("--size", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--inference", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer and not a.size:
        import torch
        torch.save({"model": peer_model()[0].state_dict()}, os.path.join(a.peer, "weights.pth"))
        return print("{}")
    if a.peer:
        return print(json.dumps(peer_measure(a.peer, a.steps, a.inference, a.size)))
    data, python = photos(), interpreter()
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = run([python, os.path.abspath(__file__), "peer", "--peer", folder])
        if made is None:
            return print(f"the package is left out: {why}", file=sys.stderr)
        compare(a.trainer, python, folder, a)


if __name__ == "__main__":
    main()
