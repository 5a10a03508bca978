#!/usr/bin/env python3
"""Compares our data flow with peers: images per CPU second, memory, time to the first batch.

    tests/bench/dataflow.py TRAINER [--rounds 5] [--seconds 1]

All run on COCO photos (MILLRACE_TEST_DATA, default: ../shared/data) with two threads or workers and
batches of four, in interleaved rounds, each peer in one process for all settings (flow_peers.py).
Prints medians. The peers' stages are those of MILLRACE_PEERS (default: ../shared/peers), run by the
Python MILLRACE_PEERS_PYTHON; missing peers are skipped with a message. Ours always keeps polygons
and run lengths; the peers rasterise full-image masks in settings with masks. Takes six minutes.
"""
import json
import os
import statistics
import sys
import tempfile

from comparison import (interpreter, parser, peers_folder, photos, ratio, run, show, take_turns)

# Ordered by memory use, since a peer's peak includes all earlier settings.
SETTINGS = [{"title": "320/533", "short": 320, "max": 533},
            {"title": "640, mosaic", "short": 640, "max": 640, "mosaic": True},
            {"title": "800/1333", "short": 800, "max": 1333},
            {"title": "800/1333, masks", "short": 800, "max": 1333, "masks": "full"}]
TITLES = [setting["title"] for setting in SETTINGS]
PEERS = ["torchdata nodes", "torchdata nodes, OpenCV", "torch DataLoader, OpenCV",
         "tensorpack threads", "SPDL threads, OpenCV", "DALI"]  # the fastest ways to use each
MANY = 5000  # number of images in the data set for the first batch
START = f"first of {MANY:,} images"
MOSAIC = """data.stages=[{type="read"}, {type="decode"}, {type="mosaic", width=640, height=640},
{type="affine", rotation=10, min_scale=0.5, max_scale=1.5, translation=0.1, shear=2, width=640,
height=640}, {type="flip"}, {type="group_by_aspect_ratio"}, {type="pad"}]""".replace("\n", " ")
SAME_WORK = 0.03  # maximum relative difference of the mean number of pixels per image


def many_images(data, folder):
    """Makes a data set of MANY images, which are the photos repeated under new names."""
    os.makedirs(f"{folder}/annotations")
    os.makedirs(f"{folder}/train2017")
    with open(f"{data}/annotations/instances_train2017.json") as file:
        every = json.load(file)
    objects, images, annotations = {}, [], []
    for annotation in every["annotations"]:
        objects.setdefault(annotation["image_id"], []).append(annotation)
    for i in range(1, MANY + 1):
        photo = every["images"][i % len(every["images"])]
        images.append({**photo, "id": i, "file_name": f"{i:012}.jpg"})
        os.symlink(f"{data}/train2017/{photo['file_name']}", f"{folder}/train2017/{i:012}.jpg")
        for annotation in objects.get(photo["id"], []):
            annotations.append({**annotation, "id": len(annotations) + 1, "image_id": i})
    with open(f"{folder}/annotations/instances_train2017.json", "w") as file:
        json.dump({**every, "images": images, "annotations": annotations}, file)
    return folder


def flow(trainer, data, setting, *more, cache="off"):
    sets = [f'data.root="{data}"', f"data.short_side={setting['short']}",
            f"data.max_side={setting['max']}", "data.batch_size=4", 'data.val=""']
    if setting.get("mosaic"):
        sets.append(MOSAIC)
    return run([trainer, "bench", "dataflow", "configs/maskrcnn.toml", "--json", "--threads", "2",
                *more, *(word for each in sets for word in ("--set", each))],
               environment={"MILLRACE_CACHE": cache})


def ours(trainer, data, many, cache, seconds):
    """Measures each setting in a process, and the first batch without and with the cache."""
    answer = {}
    for setting in SETTINGS:
        result, why = flow(trainer, data, setting, "--seconds", str(seconds))
        if result is None:
            return None, why
        # The trainer reads its peak memory before it measures lower bounds.
        answer[setting["title"]] = {
            "cpu": result["images_per_cpu_s"], "mib": result["peak_rss_bytes"] / 2**20,
            "pixels": result["pixels_per_image"],
            "decode": result["decode_floor_images_per_cpu_s"]}
    for key, where in (("first", "off"), ("cached", cache)):
        result, why = flow(trainer, many, SETTINGS[2], "--batches", "1", cache=where)
        if result is None:
            return None, why
        answer[key] = 1e3 * result["first_batch_s"]
    return answer, None


def theirs(folder, data, many, name, seconds):
    given = [{"masks": "none", "mosaic": False, "data": data, "seconds": seconds, **setting}
             for setting in SETTINGS]
    given.append({**given[2], "title": START, "data": many, "seconds": 0})
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flow_peers.py")
    result, why = run(["timeout", "200", interpreter(), here, name, json.dumps(given)],
                      environment={"PYTHONPATH": folder})
    if result is None:
        return None, why
    first = 1e3 * result.pop(START)["first_s"]
    return {title: {"cpu": r["images_per_cpu_s"], "mib": r["mib"], "pixels": r["check"]["pixels"]}
            for title, r in result.items()} | {"first": first}, None


def column(answers, title, key):
    """Returns the values of all rounds; empty for a peer without this setting."""
    return [each[title][key] for each in answers if title in each]


def throughput_cell(answers, title, own):
    rates = column(answers, title, "cpu")
    if not rates:
        return ""
    pixels = statistics.median(column(answers, title, "pixels"))
    expected = statistics.median(column(own, title, "pixels"))
    other = "" if abs(pixels / expected - 1) < SAME_WORK else f", but {pixels:.0f} pixels an image"
    beside = "" if answers is own else f": {ratio(column(own, title, 'cpu'), rates)}"
    return f"{statistics.median(rates):.0f}{beside}{other}"


def floor_row(own):
    """Returns the rates that decoding alone would allow; a mosaic takes four files."""
    rates = [statistics.median(column(own, title, "decode")) for title in TITLES]
    return ["libjpeg-turbo alone", *(f"{rate / (4 if setting.get('mosaic') else 1):.0f}"
                                     for setting, rate in zip(SETTINGS, rates))]


def show_tables(answers):
    own = next(iter(answers.values()))
    rows = [[name, *(throughput_cell(each, title, own) for title in TITLES)]
            for name, each in answers.items()]
    rows.append(floor_row(own))
    show("dataflow", "Input pipeline: images a second of CPU",
         ["", *TITLES], rows,
         "After a peer's rate, how many times as many ours makes: median of the rounds (least to"
         " most). libjpeg-turbo alone decodes the same files from memory into one buffer, which no"
         " pipeline that uses it can pass; four files make a mosaic.")
    rows = []
    for name, each in answers.items():
        first = f"{statistics.median(answer['first'] for answer in each):.0f}"
        if each is own:
            first += f" (cached: {statistics.median(answer['cached'] for answer in each):.0f})"
        memory = [column(each, title, "mib") for title in TITLES]
        rows.append([name, first, *(f"{statistics.median(m):.0f}" if m else "" for m in memory)])
    show("dataflow-start", "Input pipeline: the first batch, and peak memory",
         ["", f"first of {MANY:,} images, ms", *(f"{title}, MiB" for title in TITLES)], rows,
         "The first batch: from the start of the command, the peers' imports left out. Memory: of"
         " all processes, libraries and all.")


def main():
    arguments = parser(__doc__, "trainer", rounds=5)
    arguments.add_argument("--seconds", type=float, default=1)
    a = arguments.parse_args()
    data, folder = photos(), peers_folder("flow_torch.py")
    with tempfile.TemporaryDirectory() as temporary:
        many = many_images(data, os.path.join(temporary, "many"))
        cache = os.path.join(temporary, "cache")
        # Fills the cache.
        result, why = flow(a.trainer, many, SETTINGS[2], "--batches", "1", cache=cache)
        if result is None:
            sys.exit(f"millrace: {why}")
        measures = {"millrace": lambda: ours(a.trainer, data, many, cache, a.seconds)}
        for name in PEERS if folder else ():
            measures[name] = lambda name=name: theirs(folder, data, many, name, a.seconds)
        show_tables(take_turns(measures, a.rounds))


if __name__ == "__main__":
    main()
