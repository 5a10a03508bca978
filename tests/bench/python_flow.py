#!/usr/bin/env python3
"""Compares millrace.data with other Python libraries that make batches, in one run.

    tests/bench/python_flow.py [--rounds 3] [--seconds 5]

Runs on COCO photos (MILLRACE_TEST_DATA, default: ../shared/data) with two threads or workers,
batches of four, 800 and 320 pixels. Measures images per CPU second, images/s, memory (peak of all
processes, shared pages counted once, minus the memory of the imports), time to the first batch, and
time from a saved position after 40 batches to the next batch. MILLRACE_PEERS_PYTHON is a Python
that has millrace (`pip install` or PYTHONPATH); peers that it lacks are skipped. Their stages are
those of MILLRACE_PEERS (default: ../shared/peers, flow_torch.py and flow_opencv_serial.py), made as
fast as possible:

    DataLoader        torch's, worker processes, torchvision's decode
    DataLoader cv2    the same with OpenCV, image by image
    nodes             torchdata's ParallelMapper: threads, torchvision's decode
    nodes cv2         the same with OpenCV
    spdl              threads, its own decode and resize
    spdl cv2          its threads with OpenCV
"""
import functools
import itertools
import json
import os
import sys
import time
from types import SimpleNamespace

import process_memory
from comparison import interpreter, parser, peers_folder, photos, run, take_turns

PEERS = ["DataLoader", "DataLoader cv2", "nodes", "nodes cv2", "spdl", "spdl cv2"]
SETTINGS = [("800/1333", 800, 1333), ("320/533", 320, 533)]
PLACE = 40  # number of batches before the saved position


def millrace_batches(a):
    import millrace.data
    flow = millrace.data.Flow(root=a.data, batch_size=a.batch, short_side=a.short, max_side=a.max,
                              threads=a.workers)

    def batches(state):
        if state:
            flow.load_state_dict(state)
        for batch in flow.endless():
            yield batch.images, len(batch)
    return batches, flow.state_dict


def torch_batches(a, nodes):
    """Like flow_torch.py; torchdata saves positions by counting batches."""
    import common
    import cv2
    import flow_torch
    import numpy as np
    import torch
    cv2.setNumThreads(1)
    data = flow_torch.Images(a, common.load_records(a.data, "train"))
    ids = list(itertools.islice(common.aspect_batches(data.recs, a.batch,
                                                      np.random.default_rng(a.seed)), 4000))
    if nodes:
        from torchdata.nodes import IterableWrapper, Loader, ParallelMapper
        torch.set_num_threads(1)
        loader = Loader(ParallelMapper(IterableWrapper(ids), functools.partial(grouped, data),
                                       a.workers))
    else:
        from torchdata.stateful_dataloader import StatefulDataLoader
        loader = StatefulDataLoader(data, batch_sampler=ids, num_workers=a.workers,
                                    collate_fn=flow_torch.pad)

    def batches(state):
        if state:
            loader.load_state_dict(state)
        for images, sizes, *_ in loader:
            yield images.numpy(), len(sizes)
    return batches, loader.state_dict


def grouped(data, ids):
    import flow_torch
    return flow_torch.pad([data[i] for i in ids])


def spdl_batches(a):
    """SPDL cannot save a position: earlier batches are made again and discarded."""
    import common
    import cv2
    import flow_opencv_serial as serial
    import numpy as np
    import spdl.io
    from spdl.pipeline import PipelineBuilder
    cv2.setNumThreads(1)
    records = common.load_records(a.data, "train")
    taken = 0

    def by_spdl(i):
        record = records[i]
        h, w = common.target_size(record["height"], record["width"], a.short, a.max)
        wanted = spdl.io.get_video_filter_desc(scale_width=w, scale_height=h, scale_mode=None,
                                               scale_algo="bilinear", pix_fmt="rgb24")
        image = spdl.io.to_numpy(spdl.io.load_image(record["file"], filter_desc=wanted))
        return image[:, ::-1] if np.random.default_rng().random() < 0.5 else image

    def by_cv2(i):
        return serial.load(records[i], a, np.random.default_rng())[0]

    load = by_cv2 if a.variant == "cv2" else by_spdl

    def group(ids):
        return common.pad_stack([load(i) for i in ids]), len(ids)

    def batches(state):
        nonlocal taken
        ids = common.aspect_batches(records, a.batch, np.random.default_rng(a.seed))
        pipeline = PipelineBuilder().add_source(ids).pipe(
            group, concurrency=a.workers, output_order="input").add_sink(4).build(
            num_threads=a.workers)
        with pipeline.auto_stop():
            for k, batch in enumerate(pipeline):
                if state is None or k >= state:
                    taken = k + 1
                    yield batch
    return batches, lambda: taken


def one(name, data, short, longest, seconds, state):
    """Measures one library in this process, or only the time to the batch after `state`."""
    kind, _, variant = name.partition(" ")
    a = SimpleNamespace(data=data, short=short, max=longest, batch=4, workers=2, seed=1,
                        masks="none", antialias=False, variant=variant or "tvio")
    if kind != "millrace":
        import common  # noqa: F401  what follows prints to standard error
        import cv2  # noqa: F401
        import flow_torch  # noqa: F401
    else:
        import millrace.data  # noqa: F401
    import psutil
    imports = process_memory.now()
    memory = process_memory.Peak(every=0.02)
    began = time.perf_counter()
    make, place = {"millrace": lambda: millrace_batches(a),
                   "DataLoader": lambda: torch_batches(a, False),
                   "nodes": lambda: torch_batches(a, True),
                   "spdl": lambda: spdl_batches(a)}[kind]()
    batches = make(state)
    next(batches)
    first = time.perf_counter() - began
    if state is not None:
        return {"resume_s": first}
    for _ in range(PLACE - 1):
        next(batches)
    state = place()

    def cpu():
        own = psutil.Process()
        return sum(sum(p.cpu_times()[:2]) for p in [own, *own.children(recursive=True)])

    before, began, images, pixels = cpu(), time.perf_counter(), 0, 0
    while time.perf_counter() - began < seconds:
        batch, count = next(batches)
        batch.reshape(-1)[::4096].max()  # touches lazily mapped pages
        images, pixels = images + count, pixels + batch.nbytes / 3
    wall = time.perf_counter() - began
    return {"cpu": images / (cpu() - before), "wall": images / wall, "first_s": first,
            "mib": memory.mib - imports, "slot": pixels / images, "state": state}


def measure(folder, data, name, short, longest, seconds):
    """Starts two processes: one that measures, and one that resumes from the saved position."""
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.pathsep.join([os.environ.get("PYTHONPATH", ""), here, folder])

    def worker(state):
        code = f"""import base64, json, os, pickle, sys
out = os.fdopen(os.dup(1), "w")
import python_flow
state = pickle.loads(base64.b64decode(sys.argv[1]))
result = python_flow.one({name!r}, {data!r}, {short}, {longest}, {seconds}, state)
result["state"] = base64.b64encode(pickle.dumps(result.get("state"))).decode()
print(json.dumps(result), file=out, flush=True)
os._exit(0)
"""
        return run(["timeout", "300", interpreter(), "-c", code, state],
                   environment={"PYTHONPATH": path})

    result, why = worker(NO_STATE)
    if result is None:
        return None, why
    again, why = worker(result.pop("state"))
    return (None, why) if again is None else (result | {"resume_s": again["resume_s"]}, None)


NO_STATE = "gAROLg=="  # pickled None


def main():
    arguments = parser(__doc__, None, rounds=3)
    arguments.add_argument("--seconds", type=float, default=5)
    arguments.add_argument("--json", action="store_true")
    a = arguments.parse_args()
    data, folder = photos(), peers_folder("flow_torch.py")
    if not folder:
        sys.exit(1)
    for title, short, longest in SETTINGS:
        answers = take_turns({name: functools.partial(measure, folder, data, name, short, longest,
                                                      a.seconds)
                              for name in ["millrace", *PEERS]}, a.rounds)
        rows = {name: {key: sorted(answer[key] for answer in each)[len(each) // 2]
                       for key in each[0]} for name, each in answers.items()}
        if a.json:
            print(json.dumps({"setting": title, "rows": rows}))
            continue
        own = rows["millrace"]
        print(f"\n{title}: medians of {a.rounds} rounds, and ratios to ours"
              f"\n  {'':<16}{'images/CPU s':>18}{'images/s':>18}{'MiB':>16}{'first batch, s':>18}"
              f"{'from a place, s':>18}{'pixels a slot':>15}")
        for name, row in rows.items():
            print(f"  {name:<16}"
                  + "".join(f"{row[key]:>{width}.{digits}f} ({row[key] / own[key]:5.2f})"
                            for key, width, digits in [("cpu", 10, 1), ("wall", 10, 1),
                                                       ("mib", 8, 0), ("first_s", 10, 3),
                                                       ("resume_s", 10, 3)])
                  + f"{row['slot']:>15.0f}")


if __name__ == "__main__":
    main()
