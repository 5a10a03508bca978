#!/usr/bin/env python3
"""Our evaluator beside its peers, side by side in one run: load, evaluate and summarise, whole
processes.

    tests/bench/coco_eval.py TRAINER [--rounds 5] [--iou bbox segm]
                             [--gt G --dt-bbox B --dt-segm S] [--slow] [--json]
    tests/bench/coco_eval.py TRAINER --iou keypoints --gt G --dt-keypoints K --load-images 0

Without files of one's own, `trainer bench eval` makes a set like val2017 (5,000 images, 100
detections each) under build/, and one of 118,287 images whose annotations alone are loaded. The
peers are those of scripts/python-peers.txt that MILLRACE_PEERS_PYTHON (an interpreter) has; --slow
adds one round of faster-coco-eval and of pycocotools. Missing ones are left out with a message.
Rounds are interleaved. A peer's clock starts after its imports, ours with the process. CPU and peak
memory are of the whole process, less, for peers, what an interpreter with the same imports takes.
The last columns are the ratios of a peer's time to ours of the same round: their median, least and
most.
"""
import functools
import json
import os
import statistics
import subprocess
import sys

from comparison import interpreter, parser, run, take_turns

# module -> how its COCO and COCOeval are called
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
# module -> `load(gt)` and `evaluate(truth, dt, iou)`
PEERS = {name: imports + AS_PYCOCOTOOLS for name, imports in COCO_EVALS.items()}
PEERS["vernier"] = VERNIER
# What a peer's process runs: imports, then one of the two jobs, told in the last line.
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
    """`run` on the first so many cores; what the process took is in the answer."""
    cores = ",".join(map(str, range(threads)))
    answer, used = run(["taskset", "-c", cores] + command,
                       environment={"RAYON_NUM_THREADS": str(threads),
                                    "OMP_NUM_THREADS": str(threads)})
    return (None, used) if answer is None else (answer | used, None)


def millrace(trainer):
    """A function that runs a job, "evaluate" or "load", and gives its answer, or None and why."""
    def measure(job, gt, dt, iou, threads):
        if job == "load":
            answer, why = run_on(threads, [trainer, "bench", "eval", "--annotations", gt, "--json"])
            return answer and answer | {"cpu": answer["cpu_s"]}, why
        answer, why = run_on(threads, [trainer, "coco-eval", "--gt", gt, "--dt", dt, "--iou", iou,
                                       "--threads", str(threads), "--json"])
        return answer and answer | {"seconds": answer["wall"]}, why
    return measure


def peer(python, name):
    """The same for a peer, less what its imports take; None, and a message, where it is missing."""
    def start(job, gt, dt, iou, threads):
        program = EVALUATE.format(peer=PEERS[name])
        return run_on(threads, [python, "-c", program, job, gt, dt, iou])

    def measure(*job):
        answer, why = start(*job)
        return answer and answer | {key: answer[key] - empty[key] for key in ("cpu", "mib")}, why

    empty, missing = start("nothing", "", "", "", 1)
    if empty is None:
        print(f"{name} is left out: {missing}", file=sys.stderr)
    return measure if empty else None


def made_set(trainer, folder, images, detections):
    """The files of a set of this size, made once."""
    done = os.path.join(folder, "made")
    if not os.path.exists(done):
        print(f"making {images} images with {detections} detections each in {folder}",
              file=sys.stderr)
        subprocess.run([trainer, "bench", "eval", "--folder", folder, "--images", str(images),
                        "--detections",
                        str(detections), "--rounds", "0"], check=True, stdout=subprocess.DEVNULL)
        open(done, "w").close()
    return [os.path.join(folder, f + ".json") for f in ("instances", "boxes", "masks")]


def compare(runners, rounds, *job):
    """name -> answers of all runners to a job."""
    return take_turns({name: functools.partial(measure, *job) for name, measure in runners.items()},
                      rounds, once=SLOW)


def figures(answers, own):
    """Of a program; `own`: the answers of ours in the same rounds."""
    column = {key: [a[key] for a in answers] for key in ("seconds", "cpu", "mib")}
    ratios = [a["seconds"] / o["seconds"] for a, o in zip(answers, own)]
    return {"min_s": min(column["seconds"]), "median_s": statistics.median(column["seconds"]),
            "cpu_s": statistics.median(column["cpu"]), "mib": statistics.median(column["mib"]),
            "ratio": statistics.median(ratios), "ratio_min": min(ratios), "ratio_max": max(ratios)}


def table(title, answers):
    """Prints it and gives the same as data."""
    print(f"\n{title}\n"
          f"  {'':<24}{'min s':>8}{'median':>8}{'CPU s':>8}{'MiB':>7}{'x ours':>8}   (spread)")
    result = {}
    for name, each in answers.items():
        f = result[name] = figures(each, answers["millrace"])
        stats, ours = each[0].get("stats"), answers["millrace"][0].get("stats")
        same = ""
        if stats and name != "millrace":
            far = max(abs(a - b) for a, b in zip(stats, ours))
            f["difference"] = far
            same = "the same bits" if far == 0 else f"differ by {far:.1g}"
        print(f"  {name:<24}{f['min_s']:>8.3f}{f['median_s']:>8.3f}"
              f"{f['cpu_s']:>8.2f}{f['mib']:>7.0f}{f['ratio']:>8.2f}"
              f"   ({f['ratio_min']:.2f} to {f['ratio_max']:.2f})   {same}", flush=True)
    peers = [n for n in answers if n.partition(",")[0] != "millrace" and n not in SLOW]
    if peers:
        best = min(peers, key=lambda n: result[n]["median_s"])
        print(f"  the fastest peer, {best}, takes {result[best]['ratio']:.2f} times our time")
    return result


def load(runners, gt, rounds):
    """Annotations alone: our first load in a fresh process and one from the cache, beside the
    peers'.
    """
    answers = compare(runners, rounds, "load", gt, "", "", 2)
    answers["millrace, from the cache"] = [a | {"seconds": a["cached_s"], "cpu": a["cached_cpu_s"]}
                                           for a in answers["millrace"]]
    return table(f"{os.path.getsize(gt) / 1e6:.0f} MB of annotations, 2 threads: {rounds} rounds",
                 answers)


def main():
    arguments = parser(__doc__, "trainer", rounds=5)
    arguments.add_argument("--iou", nargs="+", choices=["bbox", "segm", "keypoints"],
                           default=["bbox", "segm"])
    arguments.add_argument("--threads", nargs="+", type=int, default=[2, 1])
    arguments.add_argument("--images", type=int, default=5000)
    arguments.add_argument("--load-images", type=int, default=118287,
                        help="of the annotations that are loaded alone; 0: none")
    arguments.add_argument("--gt")
    arguments.add_argument("--dt-bbox")
    arguments.add_argument("--dt-segm")
    arguments.add_argument("--dt-keypoints", help="of your own; no set of keypoints is made")
    arguments.add_argument("--load", help="annotations of your own to load")
    arguments.add_argument("--slow", action="store_true",
                        help="faster-coco-eval and pycocotools too, once")
    arguments.add_argument("--json", action="store_true", help="one line of JSON at the end")
    a = arguments.parse_args()
    trainer = os.path.abspath(a.trainer)
    gt, found = a.gt, {"bbox": a.dt_bbox, "segm": a.dt_segm, "keypoints": a.dt_keypoints}
    if not gt:
        gt, *made = made_set(trainer, f"build/bench-eval-{a.images}", a.images, 100)
        found = dict(zip(("bbox", "segm"), made))
    for iou in a.iou:
        if not found.get(iou):
            arguments.error(f"--iou {iou} needs --gt and --dt-{iou}")
    python = interpreter()
    runners = {"millrace": millrace(trainer)}
    for name in PEERS if python else ():
        if measure := peer(python, name) if a.slow or name not in SLOW else None:
            runners[name] = measure

    result = {}
    for iou in a.iou:
        for threads in a.threads:
            answers = compare(runners, a.rounds, "evaluate", gt, found[iou], iou, threads)
            title = f"{iou}, {threads} thread{'s' if threads > 1 else ''}: {a.rounds} rounds"
            result[f"{iou}-{threads}"] = table(title, answers)
        if {1, 2} <= set(a.threads):
            scaling = {n: result[f"{iou}-1"][n]["min_s"] / result[f"{iou}-2"][n]["min_s"]
                       for n in result[f"{iou}-2"]
                       if n in result[f"{iou}-1"] and n not in SLOW}
            result[f"{iou}-scaling"] = scaling
            print("  from 1 to 2 threads: " + ", ".join(f"{n} {s:.2f}x" for n,
                                                        s in scaling.items()))
    if a.load_images or a.load:
        gt = a.load or made_set(trainer, f"build/bench-eval-{a.load_images}", a.load_images, 0)[0]
        fast = {name: runners[name] for name in ("millrace", "hotcoco", "vernier")
                if name in runners}
        result["load"] = load(fast, gt, min(a.rounds, 3))
    if a.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
