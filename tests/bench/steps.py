"""What comparisons of training steps and detections share: the photos, our measurement, a peer's in
its own process, the table of both."""
import argparse
import itertools
import json
import os
import resource
import statistics
import sys
import tempfile
import time

from comparison import interpreter, parser, photos, run, take_turns

THREADS = 2
PHOTOS = 16


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


def ours(trainer, config, sets, steps, inference):
    """`trainer bench model`, for take_turns."""
    result, used = run([trainer, "bench", "model", config, "--json", "--steps", str(steps)]
                       + ["--inference"] * inference
                       + [a for k, v in sets.items() for a in ("--set", f"{k}={v}")])
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def theirs(python, script, arguments):
    """A script of this folder as the peer, for take_turns. OpenMP waits as ours does: on a busy
    machine, spinning threads would only make the peer slower.
    """
    result, used = run([python, "-W", "ignore", os.path.abspath(script), "peer", *arguments],
                       environment={"GOMP_SPINCOUNT": "1000"})
    return (None, used) if result is None else (result | {"peak_mib": used["mib"]}, None)


def timed(step, examples, batch, steps):
    """Calls step(list of `batch` examples) for two steps to warm up and `steps` that are timed."""

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
    """name -> s, CPU s, peak MiB."""
    return {name: [statistics.median(r[key] for r in each)
                   for key in ("step_s", "cpu_s", "peak_mib")] for name, each in answers.items()}


def compare(title, measures, steps, rounds):
    """Prints the table of ours and a peer's (name -> measure, ours first); name -> answers, or None
    without the peer.
    """
    answers = take_turns(measures, rounds)
    if len(answers) < 2:
        return None
    print(f"\n{title}: median of {rounds} x {steps} steps"
          f"\n  {'':<14}{'s':>9}{'CPU s':>9}{'peak MiB':>10}")
    rows = medians(answers)
    for name, row in rows.items():
        print(f"  {name:<14}{row[0]:>9.3f}{row[1]:>9.3f}{row[2]:>10.0f}")
    ratio = [own / other for own, other in zip(*rows.values())]
    print(f"  {'ours is':<14}{ratio[0]:>8.2f}x{ratio[1]:>8.2f}x{ratio[2]:>9.2f}x")
    for name, each in answers.items():
        print(f"  {name}, first step: " + ", ".join(f"{k} {v:.4g}" for k,
                                                    v in each[0]["first"].items()))
    profile = next(iter(answers.values()))[-1]["profile"]
    print("  our profile: " + ", ".join(f"{k['name']} {100 * k['share']:.1f} %" for k in profile))
    return answers


def compare_package(doc, script, peer, our_sets, write_weights, measure):
    """The whole script of a package that shares its weights with us: 4 images of 416 in training,
    one of 640 in detection. `peer` is its name, our_sets(folder, size) our configuration and
    settings; write_weights(folder) and measure(folder, steps, inference, size) run in the peer's
    process.
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
            return print(f"{peer} is left out: {why}", file=sys.stderr)
        for title, inference, size in (("training step, 4 x 416", False, 416),
                                       ("detection, 640", True, 640)):
            config, sets = our_sets(folder, size)
            words = ["--peer", folder, "--steps", str(a.steps), "--size", str(size)]
            measures = {"millrace": lambda: ours(a.trainer, config, sets, a.steps, inference),
                        peer: lambda: theirs(python, script, words + ["--inference"] * inference)}
            if not compare(title, measures, a.steps, a.rounds):
                return
