"""Shared by comparisons of training steps and detections: the photos, our measurement, a peer's
measurement in a separate process, the table of both."""
import argparse
import itertools
import json
import os
import resource
import statistics
import sys
import tempfile
import time

from comparison import interpreter, parser, photos, ratio, run, show, take_turns

THREADS = 2
PHOTOS = 16


def make_data(source, folder):
    """Makes a COCO folder of the 640x480 photos with the most objects, which training and
    validation share.
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
    images.sort(key=lambda i: i["id"])  # the same order in both programs
    every["images"] = images
    every["annotations"] = [a for i in images for a in objects[i["id"]]]
    os.makedirs(os.path.join(folder, "annotations"))
    for split in "train2017", "val2017":
        os.symlink(os.path.join(source, "train2017"), os.path.join(folder, split))
        with open(os.path.join(folder, "annotations", f"instances_{split}.json"), "w") as f:
            json.dump(every, f)


def ours(trainer, config, sets, steps, inference):
    """Runs `trainer bench model`; a measure for take_turns."""
    result, used = run([trainer, "bench", "model", config, "--json", "--steps", str(steps)]
                       + ["--inference"] * inference
                       + [a for k, v in sets.items() for a in ("--set", f"{k}={v}")])
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def theirs(python, script, arguments):
    """Runs a script of this folder as the peer; a measure for take_turns. OpenMP threads spin as
    briefly as ours do, since on a busy machine spinning would only make the peer slower.
    """
    result, used = run([python, "-W", "ignore", os.path.abspath(script), "peer", *arguments],
                       environment={"GOMP_SPINCOUNT": "1000"})
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def timed(step, examples, batch, steps):
    """Calls step(list of `batch` examples) for two warm-up steps and `steps` timed steps."""

    def used():
        own = resource.getrusage(resource.RUSAGE_SELF)
        return own.ru_utime + own.ru_stime

    times, cpu, first = [], [], None
    for _ in range(steps + 2):
        ready = list(itertools.islice(examples, batch))
        start, start_cpu = time.perf_counter(), used()
        last = step(ready)
        times.append(time.perf_counter() - start)
        cpu.append(used() - start_cpu)
        first = first or last
    return {"step_s": statistics.median(times[2:]), "cpu_s": statistics.mean(cpu[2:]),
            "first": first}


def medians(answers):
    """Returns name -> s, CPU s, peak MiB."""
    return {name: [statistics.median(r[key] for r in each)
                   for key in ("step_s", "cpu_s", "peak_mib")] for name, each in answers.items()}


def compare(name, title, measures, steps, rounds):
    """Measures ours and a peer (program -> measure, ours first) and shows a table; returns program
    -> answers, or None if the peer is missing.
    """
    answers = take_turns(measures, rounds)
    if len(answers) < 2:
        return None
    own = next(iter(answers.values()))
    rows = []
    for program, row in medians(answers).items():
        times = ratio([r["step_s"] for r in answers[program]], [r["step_s"] for r in own])
        rows.append([program, f"{row[0]:.3f}", f"{row[1]:.3f}", f"{row[2]:.0f}",
                     times if answers[program] is not own else ""])
    show(name, f"{title}: medians of {rounds} x {steps}", ["", "s", "CPU s", "MiB", "times ours"],
         rows, "Ours by operator: " + ", ".join(f"{k['name']} {100 * k['share']:.1f} %"
                                                for k in own[-1]["profile"]) + ".")
    for program, each in answers.items():
        print(f"  {program}, first step: " + ", ".join(f"{k} {v:.4g}" for k,
                                                       v in each[0]["first"].items()))
    return answers


def compare_package(doc, script, peer, our_sets, write_weights, measure):
    """Runs a whole script that compares ours with a package that has the same weights: 4 images of
    416 in training, one of 640 in detection. `peer` is the package's name; our_sets(folder, size)
    returns our configuration and settings; write_weights(folder) and measure(folder, steps,
    inference, size) run in the peer's process.
    """
    arguments = parser(doc, "trainer", rounds=2)
    arguments.add_argument("--steps", type=int, default=6)
    arguments.add_argument("--peer", help=argparse.SUPPRESS)
    arguments.add_argument("--size", type=int, help=argparse.SUPPRESS)
    arguments.add_argument("--inference", action="store_true", help=argparse.SUPPRESS)
    a = arguments.parse_args()
    if a.peer and not a.size:
        write_weights(a.peer)
        return print("{}")
    if a.peer:
        return print(json.dumps(measure(a.peer, a.steps, a.inference, a.size)))
    data, python = photos(), interpreter()
    if not python:
        return
    with tempfile.TemporaryDirectory() as folder:
        make_data(data, folder)
        made, why = theirs(python, script, ["--peer", folder])
        if made is None:
            return print(f"skipping {peer}: {why}", file=sys.stderr)
        slug = os.path.basename(script).partition("_")[0].removesuffix(".py")
        for kind, title, inference, size in (
                ("step", f"Training step of 4 x 416 beside {peer}", False, 416),
                ("detection", f"Detection of one image of 640 beside {peer}", True, 640)):
            config, sets = our_sets(folder, size)
            words = ["--peer", folder, "--steps", str(a.steps), "--size", str(size)]
            measures = {"millrace": lambda: ours(a.trainer, config, sets, a.steps, inference),
                        peer: lambda: theirs(python, script, words + ["--inference"] * inference)}
            if not compare(f"{slug}-{kind}", title, measures, a.steps, a.rounds):
                return
