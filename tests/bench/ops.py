#!/usr/bin/env python3
"""Compares the operators of the detectors with torchvision's CPU kernels in one run.

    tests/bench/ops.py BENCH_OPS [--rounds 3] [--filter REGEX] [--json]

BENCH_OPS is build/release/bin/bench_ops. MILLRACE_PEERS_PYTHON is a Python that has torch and
torchvision; without it only our times are printed. Rounds are interleaved; each time is the minimum
of its rounds. Each side receives its tensors in the memory format that it uses. `check` is a
value of the result, such as the number of kept boxes; differences are reported.
"""
import json
import os
import subprocess
import sys

from comparison import interpreter, parser, show

# Prints name -> [milliseconds, CPU milliseconds, check] for the names in the last argument.
PEER = r'''
import json, sys, time
import torch
from torchvision import ops
from torchvision.models.detection import rpn, _utils, roi_heads

def spread(count, step):
    values = torch.arange(count, dtype=torch.float64) * step
    return values - values.floor()

def boxes(count, width, height, least, most):
    w, h = (spread(count, s) * (most - least) + least for s in (0.5545497, 0.3025187))
    x, y = spread(count, 0.7548777) * width, spread(count, 0.5698403) * height
    return torch.stack([x, y, (x + w).clamp_max(width), (y + h).clamp_max(height)], 1).float()

def pooling(regions, size, adaptive):
    maps = [spread(2 * 256 * s * s, 0.6180339).float().view(2, 256, s, s).requires_grad_()
            for s in (128, 64, 32, 16)]
    rois = torch.cat([torch.arange(regions).remainder(2).float()[:, None],
                      boxes(regions, 512, 512, 16, 300)], 1)
    area = (rois[:, 3:] - rois[:, 1:3]).prod(1)
    levels = (area.sqrt() / 224 + 1e-8).log2().add(4).floor().clamp(2, 5).long() - 2
    parts = [(m, rois[levels == i], 0.25 / 2 ** i)
             for i, m in enumerate(maps) if (levels == i).any()]
    def work():
        return [ops.roi_align(m, r, size, scale, 0 if adaptive else 2, bool(adaptive))
                for m, r, scale in parts]
    return work, [p[0] for p in parts]

def roi_align_forward(regions, size, adaptive):
    work, _ = pooling(regions, size, adaptive)
    return torch.no_grad()(work), lambda x: torch.cat(x).mean().item()

def roi_align_backward(regions, size, adaptive):
    work, maps = pooling(regions, size, adaptive)
    out = work()
    ones = [torch.ones_like(o) for o in out]
    return ((lambda: torch.autograd.grad(out, maps, ones, retain_graph=True)),
            lambda g: g[0].square().mean().item())

def nms_of_groups(count, groups, percent):
    b, scores = boxes(count, 600, 600, 16, 300), spread(count, 0.4142136).float()
    group = torch.arange(count).remainder(groups)
    if groups == 1:
        return (lambda: ops.nms(b, scores, percent / 100)), len
    return (lambda: ops.batched_nms(b, scores, group, percent / 100)), len

def anchors():
    levels = []
    for stride in (4, 8, 16, 32, 64):
        ratios = torch.tensor([0.5, 1, 2]).sqrt()
        h, w = 8 * stride * ratios, 8 * stride / ratios
        cells = (torch.stack([-w, -h, w, h], 1) / 2).round()
        y, x = torch.meshgrid(torch.arange(-(-800 // stride)) * stride,
                              torch.arange(1344 // stride) * stride, indexing="ij")
        shift = torch.stack([x, y, x, y], -1).view(-1, 1, 4)
        levels.append((shift + cells).view(-1, 4))
    return levels

def proposals_of_batch():
    levels = anchors()
    every = torch.cat(levels)
    total = len(every)
    logits = (spread(2 * total, 0.7548777).view(2, total) * 8 - 6).float()
    deltas = (spread(8 * total, 0.5698403).view(2, total, 4) - 0.5).float()
    amount = dict(training=2000, testing=2000)
    head = rpn.RegionProposalNetwork(None, None, .7, .3, 256, .5, amount, amount, .7).eval()
    def work():
        decoded = head.box_coder.decode(deltas.view(-1, 4), [every, every]).view(2, -1, 4)
        return head.filter_proposals(decoded, logits.flatten(), [(800, 1333), (800, 1200)],
                                     [len(a) for a in levels])[0]
    return torch.no_grad()(work), lambda found: len(found[0]) + len(found[1])

def match_anchors(objects):
    every, truth = torch.cat(anchors()), boxes(objects, 1333, 800, 10, 400)
    matcher = _utils.Matcher(.7, .3, allow_low_quality_matches=True)
    return (lambda: matcher(ops.box_iou(truth, every))), lambda m: (m >= 0).sum().item()

job = json.loads(sys.argv[1])
torch.set_num_threads(job["threads"])
result = {}
for name in job["names"]:
    function, *arguments = name.split("/")
    if function not in globals():
        continue
    work, check = globals()[function](*map(int, arguments))
    answer = work()
    best = [float("inf")] * 2
    began, runs = time.perf_counter(), 0
    while runs < 3 or time.perf_counter() - began < 0.5:
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        best = [min(best[0], time.perf_counter() - wall), min(best[1], time.process_time() - cpu)]
        runs += 1
    result[name] = [best[0] * 1e3, best[1] * 1e3, check(answer)]
print(json.dumps(result))
'''


def output(command, threads):
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE,
                                     text=True).stdout)


def ours(bench, pattern, threads):
    """name -> [milliseconds, CPU milliseconds, check]."""
    answer = output([bench, "--benchmark_format=json", "--benchmark_min_time=0.3",
                     f"--benchmark_filter={pattern}"], threads)
    result = {}
    for row in answer["benchmarks"]:
        name = row["name"].removesuffix("/process_time/real_time")
        result[name] = [row["real_time"] / 1e6, row["cpu_time"] / 1e6, row["check"]]
    return result


def least(rounds):
    """Returns the minimum times of several rounds."""
    return {name: [min(r[name][0] for r in rounds), min(r[name][1] for r in rounds),
                   rounds[0][name][2]] for name in rounds[0]}


def row(name, own, other):
    """Returns a row of the table; `other` is torchvision's values or None."""
    wall, cpu, check = own
    cells = [name, f"{wall:.2f}", f"{cpu:.2f}"]
    if not other:
        return cells + [""] * 4
    differs = abs(other[2] - check) > 1e-4 * abs(check)
    cells[0] += f" (checks {check:g}, {other[2]:g})" * differs
    return cells + [f"{other[0]:.2f}", f"{other[1]:.2f}", f"{other[0] / wall:.2f}x",
                    f"{other[1] / cpu:.2f}x"]


def main():
    arguments = parser(__doc__, "bench", rounds=3)
    arguments.add_argument("--filter", default=".", help="regular expression of benchmarks to run")
    arguments.add_argument("--json", action="store_true", help="print one line of JSON at the end")
    a = arguments.parse_args()
    python = interpreter()
    if python and subprocess.run([python, "-c", "import torchvision"],
                                 stderr=subprocess.DEVNULL).returncode:
        print(f"skipping torchvision: not installed in {python}", file=sys.stderr)
        python = ""

    everything = {}
    for threads in (1, 2):
        mine, theirs = [], []
        for _ in range(a.rounds):
            mine.append(ours(a.bench, a.filter, threads))
            if python:
                job = json.dumps({"threads": threads, "names": list(mine[0])})
                theirs.append(output([python, "-c", PEER, job], threads))
        mine, theirs = least(mine), least(theirs) if theirs else {}
        rows = [row(name, figures, theirs.get(name)) for name, figures in mine.items()]
        show(f"ops-{threads}",
             f"Operators, {threads} thread{'s' * (threads > 1)}: ms, least of {a.rounds} rounds",
             ["", "ours", "CPU", "torchvision", "CPU", "times ours", "of CPU"], rows,
             "Where the results differ, both checks are said.")
        everything[threads] = {"millrace": mine, "torchvision": theirs}
    if a.json:
        print(json.dumps(everything))


if __name__ == "__main__":
    main()
