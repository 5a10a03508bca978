#!/usr/bin/env python3
"""Trains with annotations that are larger than a memory limit: read for the first time, then from
the cache.

    tests/bench/large_annotations.py TRAINER [--images 500000] [--objects 20] [--gigabytes 11]
                                     [--limit-mib 1536] [--folder DIR] [--steps 5]

Writes a small sample data set into a temporary folder in --folder (needs three times --gigabytes of
space), with annotations of --images images that repeat its photos. Outlines have as many points as
the size of the JSON requires; objects are in random order, like COCO's. RLIMIT_DATA limits memory
that is not mapped from a file. Prints seconds, the peak of this memory (RssAnon), and the peak of
all resident memory, including pages of the cache that the kernel can reclaim.
"""
import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time


def write_annotations(out, like, images, objects, size):
    """Writes COCO JSON of about `size` bytes whose images repeat those of `like`."""
    photos, count = like["images"], images * objects
    points = max(3, int((size - 90 * images) / count - 130) // 14)
    draw = random.Random(1).uniform
    outlines = ["[[" + ",".join(f"{draw(1, 90):.3f}" for _ in range(2 * points)) + "]]"
                for _ in range(64)]
    categories = [one["id"] for one in like["categories"]]
    out.write('{"images":[')
    for i in range(images):
        photo = photos[i % len(photos)]
        out.write(f'{"," if i else ""}{{"id":{i},"file_name":"{photo["file_name"]}",'
                  f'"width":{photo["width"]},"height":{photo["height"]}}}\n')
    out.write('],"annotations":[')
    for i in range(count):
        out.write(f'{"," if i else ""}{{"id":{i * 7919 % (1 << 40)},'
                  f'"image_id":{i * 2654435761 % images},'
                  f'"category_id":{categories[i % len(categories)]},'
                  f'"bbox":[{i % 50},10.5,40.75,50.5],'
                  f'"area":{900 + i % 1000},"iscrowd":0,"segmentation":{outlines[i % 64]}}}\n')
    out.write(f'],"categories":{json.dumps(like["categories"])}}}')


def sample_with_annotations(trainer, folder, images, objects, size):
    """Makes a data folder: a few sample images, and annotations that repeat them."""
    subprocess.run([trainer, "sample", "--out", folder, "--train", "64", "--val", "8"], check=True,
                   stdout=subprocess.DEVNULL)
    truth = os.path.join(folder, "annotations", "instances_train2017.json")
    with open(truth) as file:
        like = json.load(file)
    with open(truth, "w", buffering=1 << 22) as out:
        write_annotations(out, like, images, objects, size)
    return truth


def memory_of(process):
    """Returns RssAnon and VmHWM of a process in MiB; empty if it has ended."""
    try:
        with open(f"/proc/{process}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
        return [int(fields[name].split()[0]) / 1024 for name in ("RssAnon", "VmHWM")]
    except (FileNotFoundError, KeyError, ProcessLookupError):
        return []


def train(command, cache, limit):
    """Trains under the limit; returns the seconds and the peaks in MiB."""
    began, anonymous, resident = time.monotonic(), 0, 0
    def bound():
        resource.setrlimit(resource.RLIMIT_DATA, (limit << 20, limit << 20))

    with tempfile.TemporaryFile("w+") as log:
        child = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=bound,
                                 env={**os.environ, "MILLRACE_CACHE": cache})
        while child.poll() is None:
            if memory := memory_of(child.pid):
                anonymous, resident = max(anonymous, memory[0]), max(resident, memory[1])
            time.sleep(0.05)
        if child.returncode:
            log.seek(0)
            sys.exit(log.read()[-2000:])
    return time.monotonic() - began, anonymous, resident


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trainer")
    arguments.add_argument("--images", type=int, default=500000)
    arguments.add_argument("--objects", type=int, default=20, help="number per image")
    arguments.add_argument("--gigabytes", type=float, default=11)
    arguments.add_argument("--limit-mib", type=int, default=1536)
    arguments.add_argument("--folder", help="folder with enough space; default: TMPDIR")
    arguments.add_argument("--steps", type=int, default=5)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        data = os.path.join(folder, "data")
        truth = sample_with_annotations(given.trainer, data, given.images, given.objects,
                                        given.gigabytes * 1e9)
        print(f"{given.images} images, {given.images * given.objects} objects, "
              f"{os.path.getsize(truth) / 1e9:.1f} GB; limit {given.limit_mib} MiB")
        config = os.path.join(os.path.dirname(__file__), "../../configs/maskrcnn.toml")
        command = [given.trainer, "run", config, "--out", os.path.join(folder, "runs"),
                   "--set", f"data.root={data}", "--set", f"train.max_steps={given.steps}",
                   "--set", "data.batch_size=2"]
        for what in ("the first time", "from the cache"):
            took, anonymous, resident = train(command, os.path.join(folder, "cache"),
                                              given.limit_mib)
            print(f"{what}: {took:.0f} s, {anonymous:.0f} MiB, "
                  f"with pages of files {resident:.0f} MiB")


if __name__ == "__main__":
    main()
