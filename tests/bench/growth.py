#!/usr/bin/env python3
"""Measures how CPU time and memory grow with the size of each input; prints one table per input.

    tests/bench/growth.py TRAINER [--rounds 1] [--only objects]

Data sets are generated in a temporary folder (1 GB). The last column is the exponent of the growth
between the two largest sizes: 1 = proportional to the input, 0 = constant, 2 = quadratic. CPU times
are those of all threads, memory is the peak of the process. Networks are the small ones of
configs/, with random weights. Takes four minutes on two idle cores.
"""
import math
import statistics
import tempfile

from comparison import parser, show
from growth_bench import DETECTORS, Bench


def against_threads(bench):
    data = bench.data(images=64, side=800)

    def measure(threads):
        return (bench.flow(data, 800, threads=threads) |
                bench.evaluator("evaluator", 5000, 20, 80, threads=threads))

    return "threads", [1, 2], measure


def against_size(bench):
    def measure(pixels):
        side = math.isqrt(pixels)
        data = bench.data(side=side)
        result = bench.flow(data, side, images=200)
        for detector in DETECTORS:
            result |= bench.step(detector, data, side)
        return result

    return "pixels", [side * side for side in (128, 256, 512, 1024)], measure


def against_objects(bench):
    def measure(objects):
        data = bench.data(objects=objects)
        result = bench.flow(data, 320)
        for detector in DETECTORS:
            result |= bench.step(detector, data, 320)
        result |= bench.evaluator("evaluator, boxes", 10, objects, 1)
        result |= bench.evaluator("evaluator, boxes, all of them", 10, objects, 1, most=4000)
        return result | bench.evaluator("evaluator, masks", 10, objects, 1, iou="segm")

    return "objects an image", [1, 10, 100, 1000, 4000], measure


def against_classes(bench):
    def measure(classes):
        data, result = bench.data(objects=20, classes=classes), {}
        for detector in DETECTORS:
            result |= bench.step(detector, data, 320)
            result |= {f"detection: {name}": value for name, value in
                       bench.step(detector, data, 320, inference=True).items()}
        return result | bench.evaluator("evaluator", 2000, 20, classes)

    return "classes", [1, 80, 1203], measure


def against_images(bench):
    def measure(images):
        result = bench.start(bench.data(images=images, objects=2))
        if images <= 100_000:
            result |= bench.evaluator("evaluator", images, 2, 80)
        return result

    return "images", [100, 1000, 10_000, 100_000, 1_000_000], measure


def against_consumers(bench):
    data = bench.data(images=64)
    return "consumers", [1, 2, 4, 8], lambda consumers: bench.serving(data, consumers, 500)


def against_ranks(bench):
    data = bench.data(side=256)
    return "ranks", [1, 2, 4], lambda ranks: bench.ranks(data, ranks)


# name -> what it measures, and the note below its table
TABLES = {
    "threads": (against_threads, "The same work by more threads: CPU time should stay."),
    "size": (against_size, "Square images, training steps of 2."),
    "objects": (against_objects, "Training steps of 2 images of 320 x 320; of the evaluator 10 "
                "images, one class, as many detections as objects, of which 100 count, or all."),
    "classes": (against_classes, "Steps and detections of 2 images of 320 x 320; of the evaluator "
                "2,000 images of 20 objects and as many detections."),
    "images": (against_images, "From the start of the program, 2 objects an image; batches of 64 x "
               "64. The cache is mapped: its pages count, and the kernel takes them back."),
    "consumers": (against_consumers, "Each takes 500 batches of 2 images of 160 x 160."),
    "ranks": (against_ranks, "2 images of each."),
}


def exponent(sizes, values):
    """Returns x, where cost grows as size^x between the last two sizes."""
    return math.log(values[-1] / values[-2]) / math.log(sizes[-1] / sizes[-2])


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(name, bench, rounds):
    make, note = TABLES[name]
    what, sizes, measure = make(bench)
    costs = {}  # row -> its values, by size
    for size in sizes:
        answers = [measure(size) for _ in range(rounds)]
        for row in answers[0]:
            costs.setdefault(row, []).append(statistics.median(one[row] for one in answers))
    rows = []
    for row, values in costs.items():
        own = sizes[:len(values)]
        shown = [number(value) for value in values] + [""] * (len(sizes) - len(own))
        rows.append([row, *shown, f"{exponent(own, values):.2f}"])
    show(f"growth-{name}", f"Cost against {what}", [what, *(f"{size:,}" for size in sizes),
                                                    "grows as x^"], rows, note)


def main():
    arguments = parser(__doc__, "trainer", rounds=1)
    arguments.add_argument("--only", choices=TABLES)
    a = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(a.trainer, folder)
        for name in [a.only] if a.only else TABLES:
            table(name, bench, a.rounds)


if __name__ == "__main__":
    main()
