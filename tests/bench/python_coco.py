#!/usr/bin/env python3
"""Compares millrace.coco with Python peers in one run.

    tests/bench/python_coco.py TRAINER [--rounds 5] [--iou bbox segm keypoints]
                               [--from files dicts arrays] [--images 5000] [--slow] [--json]

Each process loads annotations and detections, evaluates, accumulates and summarises. Its clock
starts after the imports and, for dicts and arrays, after the detections are loaded. TRAINER makes
the data set (see coco_eval.py); people are made from its boxes. MILLRACE_PEERS_PYTHON is a Python
that has millrace (`pip install` or PYTHONPATH); peers that it lacks are skipped. vernier is called
through its own classes, which accept all three forms; the other peers are called like pycocotools.
Memory is the peak of the process minus the memory of the imports.
"""
import functools
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from coco_eval import SLOW, made_set, run_on, table
from comparison import interpreter, parser, take_turns

PYCOCOTOOLS = "from {0}.coco import COCO\nfrom {1}.cocoeval import COCOeval"
PEERS = {
    "millrace": "from millrace.coco import COCO, COCOeval",
    "hotcoco": "from hotcoco import COCO, COCOeval",
    "ultrafast_pycocotools": PYCOCOTOOLS.format(*["ultrafast_pycocotools"] * 2),
    "vernier": "from vernier import instance",
    "faster_coco_eval": "from faster_coco_eval import COCO, COCOeval_faster as COCOeval",
    "pycocotools": PYCOCOTOOLS.format(*["pycocotools"] * 2),
}
EVALUATE = """
import contextlib, json, sys, time
import numpy as np
{imports}
form, gt, dt, iou, threads = sys.argv[1:]
found, threads = dt, int(threads)
if form in ("dicts", "arrays"):
    with open(dt) as file:
        found = json.load(file)
if form == "arrays":
    found = np.array([[d["image_id"], *d["bbox"], d["score"], d["category_id"]] for d in found])
began, stats = time.perf_counter(), None
with contextlib.redirect_stdout(sys.stderr):
    if form != "nothing":
        {evaluate}
print(json.dumps({{"seconds": time.perf_counter() - began, "stats": stats}}))
"""
COCOEVAL = """truth = COCO(gt)
        e = COCOeval(truth, truth.loadRes(found), iou)
        e.evaluate()
        e.accumulate()
        e.summarize()
        stats = [float(x) for x in list(e.stats)[:12]]"""
VERNIER = """kind = {"bbox": instance.Bbox, "segm": instance.Segm, "keypoints": instance.Keypoints}
        truth = instance.CocoDataset.from_json(open(gt, "rb").read())
        if form == "files":
            found = open(dt, "rb").read()
        e = instance.Evaluator(iou=kind[iou]()).evaluate(truth, found, num_threads=threads)
        stats = [float(x) for x in list(e.stats)[:12]]"""


def peer(python, name):
    """Returns a function that evaluates and returns the answer, or None and the reason."""
    def measure(form, gt, dt, iou, threads):
        program = EVALUATE.format(imports=PEERS[name],
                                  evaluate=VERNIER if name == "vernier" else COCOEVAL)
        answers = {}
        for each in ("nothing", form):
            command = [python, "-c", program, each, gt, dt, iou, str(threads)]
            answers[each], why = run_on(threads, command)
            if why:
                return None, why
        empty, answer = answers["nothing"], answers[form]
        return answer | {key: answer[key] - empty[key] for key in ("cpu", "mib")}, None
    return measure


def made_files(folder, *made):
    """Returns iou -> annotations and detections, made once from the files `made`. All detections
    have boxes, which vernier requires; people are the boxes with a grid of 17 keypoints, some of
    which are not labelled.
    """
    gt, boxes, masks = made
    people, points, both = (os.path.join(folder, f + ".json")
                            for f in ("people", "points", "masks_and_boxes"))
    if not all(map(os.path.exists, (people, points, both))):
        truth, found, shapes = (json.load(open(f)) for f in made)
        write(both, [d | m for d, m in zip(found, shapes, strict=True)])
        only = truth["categories"][0]["id"]
        truth["categories"] = truth["categories"][:1]
        for one in truth["annotations"]:
            one["category_id"] = only
            one["keypoints"] = grid(one["bbox"], lambda k: (one["id"] + k) % 5)
            one["num_keypoints"] = sum(v > 0 for v in one["keypoints"][2::3])
            one.pop("segmentation", None)
        for one in found:
            one["category_id"] = only
            one["keypoints"] = grid(one["bbox"], lambda k: True)
        write(people, truth)
        write(points, found)
    return {"bbox": (gt, boxes), "segm": (gt, both), "keypoints": (people, points)}


def grid(box, seen):
    x, y, width, height = box
    places = [(column / 3, row / 4) for row in range(5) for column in range(4)][:17]
    return [v for k, (a, b) in enumerate(places)
            for v in ((round(x + a * width, 2), round(y + b * height, 2), 2)
                      if seen(k) else (0, 0, 0))]


def write(name, data):
    with open(name, "w") as file:
        json.dump(data, file)


def main():
    arguments = parser(__doc__, "trainer", rounds=5)
    arguments.add_argument("--iou", nargs="+", choices=["bbox", "segm", "keypoints"],
                           default=["bbox", "segm", "keypoints"])
    arguments.add_argument("--from", nargs="+", dest="forms", choices=["files", "dicts", "arrays"],
                           default=["files", "dicts", "arrays"])
    arguments.add_argument("--threads", nargs="+", type=int, default=[2])
    arguments.add_argument("--images", type=int, default=5000)
    arguments.add_argument("--detections", type=int, default=100, help="number per image")
    arguments.add_argument("--slow", action="store_true",
                           help="also measure faster-coco-eval and pycocotools, once")
    arguments.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    a = arguments.parse_args()
    python = interpreter() or sys.exit(1)
    folder = f"build/bench-eval-{a.images}" + ("" if a.detections == 100 else f"-{a.detections}")
    made = made_set(os.path.abspath(a.trainer), folder, a.images, a.detections)
    # In a separate process: the peak memory of a process includes that of its parent at its start.
    with ProcessPoolExecutor(1) as aside:
        files = aside.submit(made_files, folder, *made).result()
    runners = {name: peer(python, name) for name in PEERS if a.slow or name not in SLOW}
    result = {}
    for iou in a.iou:
        for form in a.forms:
            if form == "arrays" and iou != "bbox":
                continue
            for threads in a.threads:
                title = f"{iou} from {form}, {threads} threads: {a.rounds} rounds"
                answers = take_turns(
                    {name: functools.partial(measure, form, *files[iou], iou, threads)
                     for name, measure in runners.items()}, a.rounds, once=SLOW)
                result[f"{iou}-{form}-{threads}"] = table(title, answers)
    if a.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
