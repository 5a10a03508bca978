"""Handmade JSON for each kind of page, embedded in the viewer as the C++ code does it: the contract
of tools/report/README.md, without the program."""

import json
import pathlib
import random
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[3]
Json = dict[str, Any]
CLASSES = ["cup", "bowl", "fork", "</script><b>knife"]
KINDS = ["class", "location", "both", "duplicate", "background", "missed"]
STATS = ["AP", "AP50", "AP75", "APs", "APm", "APl", "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"]
# One grey pixel.
JPEG = ("/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP////////////////////////////////////////////////////////"
        "//////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAA"
        "AAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z")


def write_page(file: pathlib.Path, view: Json) -> pathlib.Path:
    subprocess.run(["cmake", f"-DFOLDER={ROOT / 'tools/report'}", f"-DOUT={file}", "-P",
                    ROOT / "cmake/viewer.cmake"], check=True)
    text = json.dumps(view).replace("<", "\\u003c")
    file.write_text(file.read_text().replace("@DATA@", text))
    return file


def pictures(count: int, draw: random.Random, jpeg: str | None = JPEG, judged: bool = True,
             objects: int = 4) -> Json:
    images: list[Json] = []
    for i in range(count):
        found, truth = [], []
        for _ in range(draw.randrange(objects + 1)):
            box = [draw.randrange(500), draw.randrange(300), draw.randrange(20, 200),
                   draw.randrange(20, 200)]
            kind, score = draw.randrange(len(CLASSES)), round(draw.random(), 3)
            x, y, width, height = box
            truth.append({"class": kind, "box": box, "found_at": score if judged else None,
                          "outline": [[x, y, x + width, y, x + width // 2, y + height]]})
            if not judged:
                del truth[-1]["found_at"]
            found.append({"class": kind, "box": [x + 3, *box[1:]], "score": score})
        if draw.random() < .3:
            found.append({"class": 0, "box": [600, 400, 100, 100], "score": .9,
                          "note": "background"})
        images.append({"name": f"{i:06}.jpg", "width": 640, "height": 480, "found": found,
                       "truth": truth, "tags": ["error: background"] if i % 3 else [],
                       "figures": {"F1": draw.random(), "objects": len(truth)}})
        if jpeg:
            images[-1]["jpeg"] = jpeg
    return {"classes": CLASSES, "score": .3, "images": images}


def interval(draw: random.Random, value: float) -> Json:
    return {"value": value, "low": value - draw.random() * .05, "high": value + draw.random() * .05}


def analysis(draw: random.Random, versus: bool = False) -> Json:
    def errors() -> Json:
        costs: Json = {kind: {"cost": draw.random() * .1, "count": draw.randrange(50)}
                       for kind in KINDS}
        return costs | {"false_positives": {"cost": .1}, "false_negatives": {"cost": .2}}

    per_class: list[Json] = []
    for k, name in enumerate(CLASSES):
        stats = {stat: draw.random() for stat in STATS} | {"APs": -1}
        per_class.append({"id": k + 1, "name": name, "objects": 10 * k, "detections": 12 * k,
                          "stats": stats, "errors": errors(),
                          "precision50": [1 - r / 30 for r in range(26)]})
    recall = [r / 100 for r in range(101)]
    made: Json = {
        "iou": "bbox", "stat_names": STATS, "stats": [draw.random() for _ in STATS], "images": 128,
        "per_class": per_class, "errors": errors(),
        "operating_point": {"score": .31, "precision": .8, "recall": .7, "f1": .75},
        "confusion": {"score": .31, "iou": .5, "matrix": [
            [draw.randrange(30) if a == b else draw.randrange(4) for b in range(len(CLASSES) + 1)]
            for a in range(len(CLASSES) + 1)]},
        "curves": {"recall": recall, "mean": [
            {"iou": .5 + .05 * t, "precision": [max(0, 1 - r * (1 + t / 5)) for r in recall]}
            for t in range(10)], "score": [[s, s, 1 - s, s * (1 - s)] for s in recall[::-1]]},
        "bootstrap": {"draws": 1000, "AP": interval(draw, .6), "AP50": interval(draw, .8),
                      "category_ap": [interval(draw, one["stats"]["AP"]) for one in per_class]}}
    if versus:
        made["versus"] = {"draws": 1000, "AP": .5, "AP50": .7, "p": .02, "significant": True,
                          "difference": {"AP": interval(draw, .1), "AP50": interval(draw, .1)},
                          "sentence": "+10.00 AP, p = 0.020: better",
                          "category_ap": [interval(draw, draw.random() - .5) | {"p": .5}
                                          for _ in CLASSES]}
    return made


def run(name: str, seed: int, versus: bool = False, count: int = 30) -> Json:
    draw = random.Random(seed)
    steps = range(10, 1001, 10)
    metrics: Json = {"loss": [[step, 30 / step + draw.random() * .3] for step in steps],
                     "loss_mask": [[step, 10 / step] for step in steps],
                     "lr": [[step, .01] for step in steps],
                     "gradient_norm": [[step, None if step == 500 else 2 + draw.random()]
                                       for step in steps],
                     "time/images_per_s": [[step, 14 + draw.random()] for step in steps],
                     "time/step_s": [[step, .3] for step in steps],
                     "box/accuracy": [[step, draw.random()] for step in steps]}
    evaluations = []
    for step in (250, 500, 1000):
        values = {f"bbox/{stat}": step / 2000 + .01 * k for k, stat in enumerate(STATS[:6])}
        for stat, value in values.items():
            metrics.setdefault(stat, []).append([step, value])
        evaluations.append({"step": step, "epoch": step / 250, "seconds": step * .3, "price": None,
                            "values": values})
    return {
        "name": name, "standing": "done", "standing_text": "done after step 1000", "log_end": "",
        "remarks": [], "step": 1000, "seconds": 300, "device_hours": .08, "peak_memory_mib": 1200,
        "limited": "", "metrics": metrics, "evaluations": evaluations, "verdicts": [{
            "of": "boxes", "text": "it is better", "leaning": "better"}] if versus else [],
        "class_names": {"1": "cup"}, "time_parts": [["steps", 200], ["waiting for data", 30.5]],
        "class_scores": {"bbox": [{"step": step, "ap": {"1": step / 2000, "2": .3}}
                                  for step in (250, 500)]},
        "config": [["optimizer.lr", str(seed / 100), "--set"], ["train.seed", "1", "default"]],
        "facts": [["program", "trainer 0.2"], ["devices", "1 x cpu"]],
        "scores": {"step": 1000, "weights": "", "detections": 900, "boxes": analysis(draw, versus),
                   "contradiction": None, "pictures": pictures(count, draw)}}


def runs(*made: Json) -> Json:
    return {"kind": "runs", "made_by": "trainer report", "runs": list(made)}


def evaluation() -> Json:
    return {"kind": "analysis", "made_by": "trainer coco-eval", "truth": "gt.json",
            "detections": "dt.json", "versus": "old.json",
            "analysis": analysis(random.Random(4), versus=True)}


def split(name: str) -> Json:
    return {"name": name, "seen": "in pixels of the files", "from_batches": False, "images": 400,
            "objects": 900, "crowds": 2,
            "classes": [{"name": one, "objects": 90 * k, "images": 30 * k}
                        for k, one in enumerate(CLASSES)]}


def inspection() -> Json:
    draw = random.Random(5)
    histogram = {"title": "Sizes of objects", "unit": "pixels", "meaning": "Half are below 40.",
                 "bins": {"edges": [0, 8, 16, 32, 64], "counts": [3, 40, 90, 12]}}
    anchors = [{"size": size, "objects": 100, "foreground": 70, "low_quality": 20, "none": 10,
                "recall50": .9, "recall70": .6} for size in ("all", "under 16", "16 to 32")]
    return {"kind": "inspection", "made_by": "trainer inspect", "config": "a.toml",
            "batches": {"count": 2, "images": 8, "padding_share": .12, "skipped": 1,
                        "skipped_reasons": ["no picture"], "files": ["batch-0.png", "batch-1.png"],
                        "pictures": pictures(8, draw, judged=False)},
            "learned": split("train2017") | {"histograms": {"object_size": histogram},
                                             "anchors": anchors},
            "val": split("val2017"),
            "remarks": [{"name": "crowds", "warning": False, "text": "2 crowds."},
                        {"name": "tiny-objects", "warning": True, "text": "Many are tiny."}],
            "notes": ["A note."],
            "splits": [split("train2017") | {"id": "photos",
                                             "pictures": pictures(20, draw, judged=False)}]}


def predictions(count: int = 12, jpeg: str | None = JPEG) -> Json:
    draw = random.Random(6)
    made = pictures(count, draw, jpeg=jpeg, judged=False)
    for one in made["images"]:
        one["truth"] = []
    return {"kind": "predictions", "made_by": "trainer predict", "score": .5,
            "photos": {"count": count, "objects": 30, "empty": 2, "pictures": made,
                       "failed": {"count": 1, "first": ["x.jpg: is no picture"]},
                       "classes": [{"name": "cup", "objects": 30, "photos": 9}]},
            "videos": [{"name": "a b#", "frames": 0, "counts": {"cup": 3}, "fault": ""}]}


def study() -> Json:
    def variant(name: str, base: float) -> Json:
        values = [base, base + .02, base + .01]
        figure = {"mean": base + .01, "sd": .01, "min": base, "max": base + .02,
                  "mean_low": base - .01, "mean_high": base + .03, "values": values}
        return {"name": name, "seeds": [1, 2, 3], "seconds": [60, 61, 62],
                "folders": [f"{name}-seed-{seed}/exp-1" for seed in (1, 2, 3)],
                "figures": {"bbox/AP": figure, "segm/AP": figure}}

    return {"kind": "study", "made_by": "trainer report", "study": {
        "name": "exp", "runs": 6, "done": 6, "failed": 0, "maths_threads": 1, "images": 128,
        "draws": 1000, "variants": [variant("lr=0.1", .5), variant("lr=0.2", .55)],
        "differences": [{
            "variant": "lr=0.2", "against": "lr=0.1", "figure": "bbox/AP", "difference": .05,
            "low": .03, "high": .07, "p": .003, "real": True, "seeds_sd": .01, "images_sd": .004,
            "bootstrap": {"low": .03, "high": .06, "p": .002},
            "sentence": "+5.00 AP over 3 seeds: real, it is better."}],
        "left_out": ["a remark"]}}
