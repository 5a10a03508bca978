#!/usr/bin/env python3
"""Our RT-DETR beside that of the package `transformers`: a training step and a detection, R18-vd.

    tests/bench/rtdetr.py TRAINER [--rounds 2] [--steps 6]

Both read the same COCO photos (640x480 of MILLRACE_TEST_DATA, default ../shared/data), resized to
squares, and start from the same random weights, which the package writes. Training: 4 images of
416, AdamW with clipped gradients, fp32, two threads. Detection: one image of 640, until the 300
best boxes. The package is run by MILLRACE_PEERS_PYTHON, an interpreter that has torch, torchvision,
scipy and transformers; without it there is nothing to compare.

The programs run by turns, and medians are printed. On a busy machine look at the seconds of CPU.
"""
import argparse
import json
import os
import statistics
import tempfile

from comparison import interpreter, parser, photos, run, take_turns
from step import THREADS, make_data, medians

BATCH, CLASSES = 4, 80
PAIRS = [("training step, 4 x 416", False, 416), ("detection, 640", True, 640)]


def ours(trainer, folder, steps, inference, size):
    sets = {"data.root": f'"{folder}"', "unset": '["data.stages"]', "data.flip": 0.0,
            "data.short_side": size, "data.batch_size": BATCH, "data.test_batch_size": 1,
            "train.threads": THREADS, "model.weights": f'"{folder}/model.safetensors"'}
    result, used = run([trainer, "bench", "model", "configs/coco/rtdetr_r18vd.toml", "--json",
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
    from transformers import RTDetrConfig, RTDetrForObjectDetection, RTDetrResNetConfig
    torch.manual_seed(0)
    torch.set_num_threads(THREADS)
    backbone = RTDetrResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2],
                                  layer_type="basic", out_features=["stage2", "stage3", "stage4"])
    model = RTDetrForObjectDetection(RTDetrConfig(
        backbone_config=backbone, encoder_in_channels=[128, 256, 512], hidden_expansion=0.5,
        decoder_layers=3, num_labels=CLASSES, freeze_backbone_batch_norms=False))
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.fill_(1)
    return model


def peer_photos(folder, size):
    """(RGB image (3, size, size), its labels) of each photo."""
    import torch
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    with open(os.path.join(folder, "annotations", "instances_train2017.json")) as f:
        every = json.load(f)
    label = {c: k for k, c in enumerate(sorted(c["id"] for c in every["categories"]))}
    for image in every["images"]:
        file = os.path.join(folder, "train2017", image["file_name"])
        pixels = decode_jpeg(read_file(file), mode=ImageReadMode.RGB).float() / 255
        sides = torch.tensor([image["width"], image["height"]] * 2)
        own = [a for a in every["annotations"]
               if a["image_id"] == image["id"] and not a["iscrowd"]]
        boxes = torch.tensor([[x + w / 2, y + h / 2, w, h]
                              for x, y, w, h in (a["bbox"] for a in own)]).view(-1, 4)
        yield (torch.nn.functional.interpolate(pixels[None], size=(size, size), mode="bilinear")[0],
               {"class_labels": torch.tensor([label[a["category_id"]] for a in own],
                                             dtype=torch.int64),
                "boxes": boxes / sides})


def peer_measure(folder, steps, inference, size):
    import itertools
    import resource
    import time
    import torch
    from transformers import RTDetrForObjectDetection, RTDetrImageProcessor
    model = RTDetrForObjectDetection.from_pretrained(folder)
    torch.set_num_threads(THREADS)
    model.train(not inference)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4)
    processor = RTDetrImageProcessor()

    def train(batch):
        output = model(torch.stack([image for image, _ in batch]),
                       labels=[labels for _, labels in batch])
        optimizer.zero_grad(set_to_none=True)
        output.loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        return {"loss": float(output.loss)}

    def detect(batch):
        with torch.no_grad():
            found = processor.post_process_object_detection(
                model(batch[0][0][None]), threshold=0.0, target_sizes=[(480, 640)])[0]
        return {"detections": len(found["scores"])}

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
                             "transformers": lambda: theirs(python, folder, a.steps, *setting)},
                            a.rounds)
        if "transformers" not in rounds:
            return
        print(f"\n{title}: median of {a.rounds} x {a.steps} steps"
              f"\n  {'':<14}{'s':>9}{'CPU s':>9}{'peak MiB':>10}")
        rows = medians(rounds)
        for name, row in rows.items():
            print(f"  {name:<14}{row[0]:>9.3f}{row[1]:>9.3f}{row[2]:>10.0f}")
        ratio = [own / other for own, other in zip(rows["millrace"], rows["transformers"])]
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
        peer_model().save_pretrained(a.peer)
        return print("{}")
    if a.peer:
        return print(json.dumps(peer_measure(a.peer, a.steps, a.inference, a.size)))
    data, python = photos(), interpreter()
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = run([python, "-W", "ignore", os.path.abspath(__file__), "peer", "--peer",
                         folder])
        if made is None:
            return print(f"the package is left out: {why}")
        compare(a.trainer, python, folder, a)


if __name__ == "__main__":
    main()
