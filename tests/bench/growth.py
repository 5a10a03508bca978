#!/usr/bin/env python3
"""How cost grows: CPU time and memory against the size of each input, one table each.

    tests/bench/growth.py TRAINER [--rounds 1] [--only objects]

Data sets are made for it, in a temporary folder. The last column says how the cost grows between
the two largest sizes: 1 is in proportion to the input, 0 not at all, 2 with its square. CPU times
are those of all threads, memory is the peak of the process. Networks are the small ones of
configs/, from random weights. Four minutes on two idle cores.
"""
import contextlib
import math
import os
import signal
import statistics
import subprocess
import tempfile
import time

from comparison import parser, run, show, spent
from made_data import make_set, write_results

CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs")
DETECTORS = {"maskrcnn": "Mask R-CNN", "cascadercnn": "Cascade Mask R-CNN",
             "retinanet": "RetinaNet", "rtdetr": "RT-DETR", "yolox": "YOLOX"}
# As published, where the small configurations have less.
MODELS = {"rtdetr": {"model.decoder.num_queries": 300, "model.denoising.num_queries": 100}}
STEPS, IMAGES = 3, 2  # of a timed training step: how many, images of each


class Bench:
    """What is measured, each as {row of the table: value}."""

    def __init__(self, trainer, folder):
        self.trainer, self.folder = os.path.abspath(trainer), folder
        self.sets = {}

    def data(self, **sizes):
        """The folder of a made set of these sizes; written once."""
        key = tuple(sorted(sizes.items()))
        if key not in self.sets:
            self.sets[key] = make_set(os.path.join(self.folder, f"set{len(self.sets)}"), **sizes)
        return self.sets[key]

    def json(self, *words, settings=None, cache="cache"):
        """The JSON that a command prints, and what the process took."""
        words += tuple(word for key, value in (settings or {}).items()
                       for word in ("--set", f"{key}={value}"))
        result, used = run([self.trainer, *map(str, words), "--json"],
                           environment={"MILLRACE_CACHE": os.path.join(self.folder, cache)})
        if result is None:
            raise SystemExit(f"{' '.join(map(str, words))}: {used}")
        return result, used

    def step(self, detector, data, side, inference=False, **more):
        """A training step, or a detection, of square images."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.flip": 0,
                    "data.test_batch_size": IMAGES, "train.epochs": 1e9, "train.threads": 1,
                    "model.weights": '""', **MODELS.get(detector, {}), **more}
        for kind in ("", "test_"):
            settings |= {f"data.{kind}short_side": side, f"data.{kind}max_side": side}
        result, used = self.json("bench", "model", f"{CONFIGS}/{detector}.toml", "--steps", STEPS,
                                 *["--inference"] * inference, settings=settings)
        name = DETECTORS[detector]
        return {f"{name}, CPU ms": 1e3 * result["cpu_s"], f"{name}, MiB": used["mib"]}

    def flow(self, name, data, side, images=64, threads=1, **more):
        """The training flow: an image of it, and the process's memory."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.short_side": side,
                    "data.max_side": side, **more}
        result, used = self.json("bench", "dataflow", f"{CONFIGS}/maskrcnn.toml", "--batches",
                                 images // IMAGES, "--threads", threads, settings=settings)
        return {f"{name}, CPU ms an image": 1e3 * result["cpu_s"] / result["images"],
                f"{name}, MiB": used["mib"]}

    def evaluator(self, name, images, objects, classes, threads=1, iou="bbox", most=100):
        """`trainer coco-eval` of as many detections as objects, the process as a whole."""
        data = self.data(images=images, objects=objects, classes=classes)
        found = os.path.join(data, "found.json")
        if not os.path.exists(found):
            write_results(found, images, objects, classes, side=320)
        _, used = self.json("coco-eval", "--gt", f"{data}/annotations/instances_val2017.json",
                            "--dt", found, "--iou", iou, "--threads", threads, "--max-dets", 1, 10,
                            most)
        return {f"{name}, CPU ms": 1e3 * used["cpu"], f"{name}, MiB": used["mib"]}


def against_threads(bench):
    data = bench.data(images=64, side=800)

    def measure(threads):
        return (bench.flow("data flow", data, 800, threads=threads) |
                bench.evaluator("evaluator", 5000, 20, 80, threads=threads))

    return "threads", [1, 2], measure


def against_size(bench):
    def measure(pixels):
        side = math.isqrt(pixels)
        data = bench.data(side=side)
        result = bench.flow("data flow", data, side, images=200)
        for detector in DETECTORS:
            result |= bench.step(detector, data, side)
        return result

    return "pixels", [side * side for side in (128, 256, 512, 1024)], measure


def against_objects(bench):
    def measure(objects):
        data = bench.data(objects=objects)
        result = bench.flow("data flow", data, 320)
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
        data, result = bench.data(images=images, objects=2), {}
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.short_side": 64}
        for name in "first batches", "the same, annotations cached":
            _, used = bench.json("bench", "dataflow", f"{CONFIGS}/maskrcnn.toml", "--batches", 2,
                                 settings=settings, cache=f"cache{images}")
            result |= {f"{name}, CPU ms": 1e3 * used["cpu"], f"{name}, MiB": used["mib"]}
        if images <= 100_000:
            result |= bench.evaluator("evaluator", images, 2, 80)
        return result

    return "images", [100, 1000, 10_000, 100_000, 1_000_000], measure


def cpu_of(process):
    """CPU seconds of a running process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def server(bench, data, endpoint):
    """The process of a data server that listens."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [bench.trainer, "serve", f"{CONFIGS}/maskrcnn.toml", "--bind", endpoint, "--set",
             f'data.root="{data}"', "--set", f"data.batch_size={IMAGES}"], stdout=log, stderr=log)
        try:
            while process.poll() is None and not os.path.exists(endpoint.removeprefix("ipc://")):
                time.sleep(0.05)
            yield process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def against_consumers(bench):
    data, batches = bench.data(images=64), 100

    def measure(consumers):
        endpoint = f"ipc://{bench.folder}/server{consumers}"
        with server(bench, data, endpoint) as process:
            before = cpu_of(process)
            taking = [subprocess.Popen(
                [bench.trainer, "bench", "dataflow", f"{CONFIGS}/maskrcnn.toml", "--json",
                 "--batches", str(batches), "--set", f'data.source=["{endpoint}"]', "--set",
                 f'data.root="{data}"', "--set", f"data.batch_size={IMAGES}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(consumers)]
            if any([one.wait() for one in taking]):
                raise SystemExit("a consumer of the data server failed")
            cpu = cpu_of(process) - before
            with open(f"/proc/{process}/status") as file:
                peak = int(file.read().split("VmHWM:")[1].split()[0]) / 1024
        return {"server, CPU ms of all batches": 1e3 * cpu, "server, MiB": peak}

    return "consumers", [1, 2, 4, 8], measure


def against_ranks(bench):
    settings = {"data.root": f'"{bench.data(side=256)}"', "data.batch_size": IMAGES,
                "train.threads": 1}

    def measure(ranks):
        numbers = ",".join(str(n) for n in sorted({1, ranks}))
        result, _ = bench.json("bench", "scaling", f"{CONFIGS}/maskrcnn.toml", "--weak", "--ranks",
                               numbers, "--steps", 10, settings=settings)
        return {"training step, CPU ms of all ranks": 1e3 * result["runs"][-1]["cpu_s"]}

    return "ranks", [1, 2, 4], measure


# name -> what it measures, what is behind the figures
TABLES = {
    "threads": (against_threads, "The same work by more threads: CPU time should stay."),
    "size": (against_size, "Square images, training steps of 2."),
    "objects": (against_objects, "Training steps of 2 images of 320 x 320; of the evaluator 10 "
                "images, one class, as many detections as objects, of which 100 count, or all."),
    "classes": (against_classes, "Steps and detections of 2 images of 320 x 320; of the evaluator "
                "2,000 images of 20 objects and as many detections."),
    "images": (against_images, "From the start of the program, 2 objects an image; batches of 64 x "
               "64. The cache is mapped: its pages count, and the kernel takes them back."),
    "consumers": (against_consumers, "Each takes 100 batches of 2 images of 160 x 160."),
    "ranks": (against_ranks, "2 images of each. Ranks that have no core of their own wait for each "
              "other, which takes CPU time, too."),
}


def exponent(sizes, values):
    """x, where cost grows with size^x between the last two sizes."""
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
