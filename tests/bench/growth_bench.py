"""Measurements for growth.py: CPU time and memory of parts of `trainer` on generated data."""
import contextlib
import os
import signal
import subprocess
import tempfile
import time

from comparison import run
from made_data import make_set, write_results

CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs")
DETECTORS = {"maskrcnn": "Mask R-CNN", "cascadercnn": "Cascade Mask R-CNN",
             "retinanet": "RetinaNet", "rtdetr": "RT-DETR", "yolox": "YOLOX"}
# Published values, where the small configurations use smaller ones.
MODELS = {"rtdetr": {"model.decoder.num_queries": 300, "model.denoising.num_queries": 100}}
# Allows Open MPI to run as root, which is the only user of a container.
AS_ROOT = ({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
           if os.geteuid() == 0 else {})
STEPS, IMAGES = 3, 2  # number of timed training steps, images per step


class Bench:
    """Measurements; each returns {row of the table: value}."""

    def __init__(self, trainer, folder):
        self.trainer, self.folder = os.path.abspath(trainer), folder
        self.sets = {}

    def data(self, **sizes):
        """Returns the folder of a generated data set of these sizes; written once."""
        key = tuple(sorted(sizes.items()))
        if key not in self.sets:
            self.sets[key] = make_set(os.path.join(self.folder, f"set{len(self.sets)}"), **sizes)
        return self.sets[key]

    def json(self, *words, settings=None, cache="", program="trainer"):
        """Returns the JSON that a command prints and the resources that it used."""
        words += tuple(word for key, value in (settings or {}).items()
                       for word in ("--set", f"{key}={value}"))
        program = os.path.join(os.path.dirname(self.trainer), program)
        result, used = run([program, *map(str, words), "--json"],
                           environment={**AS_ROOT,
                                        "MILLRACE_CACHE": cache or f"{self.folder}/cache"})
        if result is None:
            raise SystemExit(f"{' '.join(map(str, words))}: {used}")
        return result, used

    def step(self, detector, data, side, inference=False):
        """Measures a training step or a detection with square images."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.flip": 0,
                    "data.test_batch_size": IMAGES, "train.epochs": 1e9, "train.threads": 1,
                    "model.weights": '""', **MODELS.get(detector, {})}
        for kind in ("", "test_"):
            settings |= {f"data.{kind}short_side": side, f"data.{kind}max_side": side}
        result, used = self.json("bench", "model", f"{CONFIGS}/{detector}.toml", "--steps", STEPS,
                                 *["--inference"] * inference, settings=settings)
        name = DETECTORS[detector]
        return {f"{name}, CPU ms": 1e3 * result["cpu_s"], f"{name}, MiB": used["mib"]}

    def flow(self, data, side, images=64, threads=1):
        """Measures the training flow per image."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.short_side": side,
                    "data.max_side": side}
        result, used = self.json("bench", "dataflow", f"{CONFIGS}/maskrcnn.toml", "--batches",
                                 images // IMAGES, "--threads", threads, settings=settings)
        return {"data flow, CPU ms an image": 1e3 * result["cpu_s"] / result["images"],
                "data flow, MiB": used["mib"]}

    def evaluator(self, name, images, objects, classes, threads=1, iou="bbox", most=100):
        """Measures the whole process of `trainer coco-eval` with as many detections as objects."""
        data = self.data(images=images, objects=objects, classes=classes)
        found = os.path.join(data, "found.json")
        if not os.path.exists(found):
            write_results(found, images, objects, classes, side=320)
        _, used = self.json("coco-eval", "--gt", f"{data}/annotations/instances_val2017.json",
                            "--dt", found, "--iou", iou, "--threads", threads, "--max-dets", 1, 10,
                            most)
        return {f"{name}, CPU ms": 1e3 * used["cpu"], f"{name}, MiB": used["mib"]}

    def start(self, data):
        """Measures the time to two batches, with annotations from JSON and then from the cache."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "data.short_side": 64}
        cache, result = tempfile.mkdtemp(dir=self.folder), {}
        for name in "first batches", "the same, annotations cached":
            _, used = self.json("bench", "dataflow", f"{CONFIGS}/maskrcnn.toml", "--batches", 2,
                                settings=settings, cache=cache)
            result |= {f"{name}, CPU ms": 1e3 * used["cpu"], f"{name}, MiB": used["mib"]}
        return result

    def ranks(self, data, count):
        """Measures a training step on `count` ranks with 2 images each."""
        settings = {"data.root": f'"{data}"', "data.batch_size": IMAGES, "train.threads": 1}
        numbers = ",".join(str(n) for n in sorted({1, count}))
        result, _ = self.json(f"{CONFIGS}/maskrcnn.toml", "--weak", "--ranks", numbers, "--steps",
                              10, settings=settings, program="bench_scaled_runs")
        return {"training step, CPU ms of all ranks": 1e3 * result["runs"][-1]["cpu_s"]}

    def serving(self, data, consumers, batches):
        """Measures a data server whose consumers read `batches` batches each."""
        endpoint = f"ipc://{self.folder}/server{consumers}"
        words = [f"{CONFIGS}/maskrcnn.toml", "--set", f'data.root="{data}"', "--set",
                 f"data.batch_size={IMAGES}"]
        take = [self.trainer, "bench", "dataflow", *words, "--json", "--batches", str(batches),
                "--set", f'data.source=["{endpoint}"]']
        with listening([self.trainer, "serve", *words, "--bind", endpoint], endpoint) as server:
            before = cpu_of(server)
            taking = [subprocess.Popen(take, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                      for _ in range(consumers)]
            if any([one.wait() for one in taking]):
                raise SystemExit("a consumer of the data server failed")
            cpu = cpu_of(server) - before
            with open(f"/proc/{server}/status") as file:
                peak = int(file.read().split("VmHWM:")[1].split()[0]) / 1024
        return {"server, CPU ms of all batches": 1e3 * cpu, "server, MiB": peak}


def cpu_of(process):
    """Returns the CPU seconds of a running process."""
    with open(f"/proc/{process}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def listening(command, endpoint):
    """Starts a server that listens on an ipc:// endpoint; yields its process id."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(endpoint.removeprefix("ipc://")):
            if process.poll() is not None:
                raise SystemExit("the data server failed")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
