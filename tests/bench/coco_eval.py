#!/usr/bin/env python3
"""Compares our evaluator with peers in one run: load, evaluate and summarise, as whole processes.

    tests/bench/coco_eval.py TRAINER [--rounds 5] [--iou bbox segm keypoints]
                             [--gt G --dt-bbox B --dt-segm S --dt-keypoints K] [--slow] [--json]

Without --gt, data sets like val2017 are made in build/: 5,000 images with 100 detections each
(`trainer bench eval`) or 20 detected persons with keypoints each (made_keypoints.py), and 118,287
images, whose annotations are only loaded. The peers are those of scripts/python-bench.txt that the
Python MILLRACE_PEERS_PYTHON has; --slow adds one round of faster-coco-eval and of pycocotools.
Missing peers are skipped with a message. Rounds are interleaved. A peer's clock starts after its
imports, ours at the start of the process. CPU time and peak memory are those of the process, for
peers minus those of an interpreter with the same imports. "times ours" is the ratio of a peer's
time to ours in the same round: median, minimum and maximum.
"""
import functools
import json
import os
import statistics
import subprocess
import sys

import made_keypoints
from comparison import interpreter, parser, ratio, run, show, take_turns

# module -> how its COCO and COCOeval are imported
COCO_EVALS = {
    "hotcoco": "from hotcoco import COCO, COCOeval",
    "ultrafast_pycocotools": "from ultrafast_pycocotools.coco import COCO\n"
                             "from ultrafast_pycocotools.cocoeval import COCOeval",
    "faster_coco_eval": "from faster_coco_eval import COCO, COCOeval_faster as COCOeval",
    "pycocotools": "from pycocotools.coco import COCO\nfrom pycocotools.cocoeval import COCOeval",
}
SLOW = {"pycocotools", "faster_coco_eval"}
AS_PYCOCOTOOLS = """
def load(gt):
    return COCO(gt)

def evaluate(truth, dt, iou):
    e = COCOeval(truth, truth.loadRes(dt), iou)
    e.evaluate()
    e.accumulate()
    e.summarize()
    return e.stats
"""
# vernier's own API: its COCOeval would need pycocotools to read the files.
VERNIER = """
from pathlib import Path
from vernier.instance import Bbox, CocoDataset, Evaluator, Keypoints, Segm

def load(gt):
    return CocoDataset.from_json(Path(gt).read_bytes())

def evaluate(truth, dt, iou):
    kind = {"bbox": Bbox, "segm": Segm, "keypoints": Keypoints}[iou]()
    evaluator = Evaluator(iou=kind, parity_mode="strict")
    threads = int(os.environ["RAYON_NUM_THREADS"])
    return evaluator.evaluate(truth, Path(dt).read_bytes(), num_threads=threads).stats
"""
# module -> program text that defines `load(gt)` and `evaluate(truth, dt, iou)`
PEERS = {name: imports + AS_PYCOCOTOOLS for name, imports in COCO_EVALS.items()}
PEERS["vernier"] = VERNIER
# The program of a peer's process: imports, then one of two jobs. The last line has the result.
EVALUATE = """
import contextlib, json, os, sys, time
{peer}
job, gt, dt, iou = sys.argv[1:]
began, stats = time.perf_counter(), None
with contextlib.redirect_stdout(sys.stderr):
    if job != "nothing":
        truth = load(gt)
    if job == "evaluate":
        stats = [float(x) for x in list(evaluate(truth, dt, iou))[:12]]
print(json.dumps({{"seconds": time.perf_counter() - began, "stats": stats}}))
"""


def run_on(threads, command):
    """Runs a command on the first `threads` cores; the answer contains the resources used."""
    cores = ",".join(map(str, range(threads)))
    answer, used = run(["taskset", "-c", cores] + command,
                       environment={"RAYON_NUM_THREADS": str(threads),
                                    "OMP_NUM_THREADS": str(threads)})
    return (None, used) if answer is None else (answer | used, None)


def millrace(trainer):
    """Returns a function that runs a job, "evaluate" or "load", and returns its answer, or None and
    the reason.
    """
    def measure(job, gt, dt, iou, threads):
        if job == "load":
            answer, why = run_on(threads, [trainer, "bench", "eval", "--annotations", gt, "--json"])
            return answer and answer | {"cpu": answer["cpu_s"]}, why
        answer, why = run_on(threads, [trainer, "coco-eval", "--gt", gt, "--dt", dt, "--iou", iou,
                                       "--threads", str(threads), "--json"])
        return answer and answer | {"seconds": answer["wall"]}, why
    return measure


def peer(python, name):
    """The same for a peer, minus the resources of its imports; if the peer is missing, prints a
    message and returns None.
    """
    def start(job, gt, dt, iou, threads):
        program = EVALUATE.format(peer=PEERS[name])
        return run_on(threads, [python, "-c", program, job, gt, dt, iou])

    def measure(*job):
        answer, why = start(*job)
        return answer and answer | {key: answer[key] - empty[key] for key in ("cpu", "mib")}, why

    empty, missing = start("nothing", "", "", "", 1)
    if empty is None:
        print(f"skipping {name}: {missing}", file=sys.stderr)
    return measure if empty else None


def made_once(folder, make):
    """Returns the folder of a data set; calls `make` if it does not exist yet."""
    done = os.path.join(folder, "made")
    if not os.path.exists(done):
        print(f"making a data set in {folder}", file=sys.stderr)
        make()
        open(done, "w").close()
    return folder


def made_set(trainer, images, detections):
    """Returns the files of a data set of this size."""
    folder = f"build/bench-eval-{images}"
    words = [trainer, "bench", "eval", "--folder", folder, "--images", str(images), "--detections",
             str(detections), "--rounds", "0"]
    made_once(folder, lambda: subprocess.run(words, check=True, stdout=subprocess.DEVNULL))
    return [os.path.join(folder, f + ".json") for f in ("instances", "boxes", "masks")]


def made_sets(trainer, images):
    """Returns kind of IoU -> annotations and detections."""
    truth, boxes, masks = made_set(trainer, images, 100)
    folder = f"build/bench-keypoints-{images}"
    # In a separate process, since the peak memory of a child includes that of its parent.
    words = [sys.executable, made_keypoints.__file__, folder, str(images), "20"]
    made_once(folder, lambda: subprocess.run(words, check=True))
    return {"bbox": (truth, boxes), "segm": (truth, masks),
            "keypoints": (f"{folder}/instances.json", f"{folder}/keypoints.json")}


def compare(runners, rounds, *job):
    """Returns name -> answers of all runners to a job."""
    return take_turns({name: functools.partial(measure, *job) for name, measure in runners.items()},
                      rounds, once=SLOW)


def figures(answers, own):
    """Returns the values of a program; `own` are our answers in the same rounds."""
    column = {key: [a[key] for a in answers] for key in ("seconds", "cpu", "mib")}
    return {"min_s": min(column["seconds"]), "median_s": statistics.median(column["seconds"]),
            "cpu_s": statistics.median(column["cpu"]), "mib": statistics.median(column["mib"]),
            "times_ours": ratio(column["seconds"], [a["seconds"] for a in own])}


def bits(answers, own):
    """Returns how far the 12 metrics of a peer are from ours, as text."""
    stats, ours = answers[0].get("stats"), own[0].get("stats")
    if not stats or answers is own:
        return ""
    far = max(abs(a - b) for a, b in zip(stats, ours))
    return "the same bits" if far == 0 else f"differ by {far:.1g}"


def table(name, title, answers):
    """Shows a table and returns its values."""
    own = answers["millrace"]
    result = {program: figures(each, own) for program, each in answers.items()}
    rows = [[program, f"{f['median_s']:.3f}", f"{f['min_s']:.3f}", f"{f['cpu_s']:.2f}",
             f"{f['mib']:.0f}", f["times_ours"] if answers[program] is not own else "",
             bits(answers[program], own)] for program, f in result.items()]
    show(name, title, ["", "s", "least", "CPU s", "MiB", "times ours", "figures"], rows)
    return result


def scaling(result, kinds):
    """Shows how much faster each program is with two threads: minimum over minimum."""
    names = [name for name in result[f"{kinds[0]}-2"] if name not in SLOW]
    faster = {name: [result[f"{iou}-1"][name]["min_s"] / result[f"{iou}-2"][name]["min_s"]
                     if name in result[f"{iou}-1"] and name in result[f"{iou}-2"] else None
                     for iou in kinds] for name in names}
    show("evaluation-scaling", "From one to two threads", ["", *kinds],
         [[name, *(f"{one:.2f}x" if one else "" for one in each)] for name, each in faster.items()])
    return faster


def load(runners, gt, rounds):
    """Measures loading annotations: ours in a fresh process and from the cache, and the peers'."""
    answers = compare(runners, rounds, "load", gt, "", "", 2)
    answers["millrace, from the cache"] = [a | {"seconds": a["cached_s"], "cpu": a["cached_cpu_s"]}
                                           for a in answers["millrace"]]
    return table("evaluation-load",
                 f"{os.path.getsize(gt) / 1e6:.0f} MB of annotations, 2 threads: {rounds} rounds",
                 answers)


def main():
    arguments = parser(__doc__, "trainer", rounds=5)
    arguments.add_argument("--iou", nargs="+", choices=["bbox", "segm", "keypoints"],
                           default=["bbox", "segm", "keypoints"])
    arguments.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    arguments.add_argument("--images", type=int, default=5000)
    arguments.add_argument("--load-images", type=int, default=118287,
                        help="number of images of the annotations that are only loaded; 0 = none")
    arguments.add_argument("--gt")
    arguments.add_argument("--dt-bbox")
    arguments.add_argument("--dt-segm")
    arguments.add_argument("--dt-keypoints")
    arguments.add_argument("--load", help="annotation file to load")
    arguments.add_argument("--slow", action="store_true",
                        help="also measure faster-coco-eval and pycocotools, once")
    arguments.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    a = arguments.parse_args()
    trainer = os.path.abspath(a.trainer)
    own = {"bbox": a.dt_bbox, "segm": a.dt_segm, "keypoints": a.dt_keypoints}
    for iou in a.iou if a.gt else ():
        if not own[iou]:
            arguments.error(f"--iou {iou} with --gt needs --dt-{iou}")
    sets = ({iou: (a.gt, found) for iou, found in own.items()} if a.gt
            else made_sets(trainer, a.images))
    python = interpreter()
    runners = {"millrace": millrace(trainer)}
    for name in PEERS if python else ():
        if measure := peer(python, name) if a.slow or name not in SLOW else None:
            runners[name] = measure

    result = {}
    for iou in a.iou:
        for threads in a.threads:
            answers = compare(runners, a.rounds, "evaluate", *sets[iou], iou, threads)
            title = f"{iou}, {threads} thread{'s' if threads > 1 else ''}: {a.rounds} rounds"
            result[f"{iou}-{threads}"] = table(f"evaluation-{iou}-{threads}", title, answers)
    if {1, 2} <= set(a.threads):
        result["scaling"] = scaling(result, a.iou)
    if a.load_images or a.load:
        gt = a.load or made_set(trainer, a.load_images, 0)[0]
        fast = {name: runners[name] for name in ("millrace", "hotcoco", "vernier")
                if name in runners}
        result["load"] = load(fast, gt, min(a.rounds, 3))
    if a.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
