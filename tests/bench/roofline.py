#!/usr/bin/env python3
"""Lists the kernels of a training step of Mask R-CNN R50-FPN with their FLOPs and bytes, and the
least time that an H100 and an H200 need for them: docs/scaling.md.

    tests/bench/roofline.py                the tables of the page
    tests/bench/roofline.py --kernels      every kernel
    tests/bench/roofline.py --json         totals
    tests/bench/roofline.py --check PAGE   check that the page contains the output

All values follow from the layer shapes of configs/coco/mask_rcnn_R50_FPN_1x.toml with frozen norms,
stem and C2. tests/bench/roofline_test.cpp compares FLOPs and parameters with those of the operators
that a real step runs. A kernel's time is the larger of FLOPs / rate and
bytes / bandwidth; each tensor is read and written once per kernel, whatever the caches keep.
Activations are bf16, channels last; weights, losses, boxes and the optimizer fp32.
"""
import argparse
import dataclasses
import json
import sys

# Dense rates (without sparsity) and bandwidths from NVIDIA's data sheets (SXM).
TENSOR, FP32 = 989e12, 67e12  # FLOP/s
GPUS = {"H100": 3.35e12, "H200": 4.8e12}  # B/s
# A step with 12 images on each of 8 H100 GPUs in MLPerf training v3.0, and its compute time by the
# model of docs/scaling.md, since MLPerf's logs contain no kernel times.
MLPERF_STEP_MS, MLPERF_COMPUTE_MS, MLPERF_BATCH = 66.9, 53.0, 12

HALF, FULL, INDEX = 2, 4, 8  # bytes of bf16, fp32 and int64
CELLS = 3  # anchors per position

# What our kernels do in addition to those of the roofline, and where.
EPILOGUE = "bias, sum and ReLU as a kernel after the convolution (plugins/cuda/finish.cu)"
AFTER = "bias and ReLU after the transposed convolution, ReLU after fc6 and fc7 (libtorch)"
RELU_BACK = "ReLU's gradient as a kernel (convolution.cpp)"
JOIN = "sums of the gradients of a map that several layers read (autograd)"
WEIGHTS = "weights scaled and rounded to bf16; their gradients to fp32 (convolution.cpp)"
UPSAMPLE = "upsampled maps in memory (fpn.cpp)"
DRAWN = "predicting the anchors drawn once more (rpn.cpp)"
LEVELS = "levels put together (rpn.cpp)"
SELECT = "64-bit keys for the best 2,000, read once for each 8 bits (plugins/cuda/ops.cpp)"
FLATTEN = "pooled regions copied to (C, H, W) for fc6, and back (box_head.cpp)"


@dataclasses.dataclass
class Kernel:
    part: str
    name: str
    flops: float
    bytes: float
    extra: str = ""  # why it runs although the roofline omits it; "" = in the roofline
    rate: float = TENSOR

    def seconds(self, gpu):
        return max(self.flops / self.rate, self.bytes / GPUS[gpu])


@dataclasses.dataclass
class Map:
    """Activations (n, channels, height, width) in bf16."""
    n: int
    channels: int
    height: int
    width: int

    @property
    def values(self):
        return self.n * self.channels * self.height * self.width

    @property
    def bytes(self):
        return HALF * self.values


class Step:
    def __init__(self, a):
        self.kernels, self.trainable = [], 0
        self.matrix = {"forward": 0, "backward": 0}  # FLOPs of convolutions and matrix products
        image = Map(a.batch, 3, a.height, a.width)
        self.pixels(image)
        maps = self.fpn(self.resnet(image))
        self.rpn(maps, a)
        self.pool("box", maps, a.boxes, 7)
        self.box_head(a)
        self.pool("mask", maps, a.masks, 14)
        self.mask_head(a)
        for level, each in enumerate(maps[:4]):  # read for sampled anchors and by two ROIAligns
            self.add("FPN", f"P{level + 2} sums of gradients", 0, 4 * each.bytes, JOIN)
        self.add("optimizer", "norms of the gradients", self.trainable * 2, FULL * self.trainable,
                 rate=FP32)
        self.add("optimizer", "SGD with momentum", self.trainable * 6, 5 * FULL * self.trainable,
                 rate=FP32)

    def add(self, part, name, flops, size, extra="", rate=TENSOR):
        self.kernels.append(Kernel(part, name, flops, size, extra, rate))

    def product(self, part, name, flops, size, direction):
        self.matrix[direction] += flops
        self.add(part, name, flops, size)

    def conv(self, part, name, x, out, kernel=1, stride=1, relu=True, bias=False, add=False,
             trained=True, needs_dx=True, twice=False):
        """Adds a convolution and what follows it. `bias`: a trained bias, otherwise the shift of a
        frozen norm; `add`: a map of the output's size is added; `twice`: another layer also reads
        the input."""
        y = Map(x.n, out, -(-x.height // stride), -(-x.width // stride))
        weights = out * x.channels * kernel * kernel
        flops = 2 * y.values * x.channels * kernel * kernel
        self.product(part, f"{name} forward", flops,
                     x.bytes + y.bytes * (2 if add else 1) + HALF * weights, "forward")
        # The roofline also reads the map that is added.
        self.add(part, f"{name} bias, sum, ReLU", 0, 2 * y.bytes, EPILOGUE)
        scaled = (0 if bias or not trained else 2 * FULL) * weights
        rounded = (FULL + HALF) * weights
        self.add(part, f"{name} weights", 0, scaled + rounded, WEIGHTS)
        if not trained:
            return y
        self.trainable += weights + (out if bias else 0)
        if relu:  # the roofline reads the output and the gradient
            self.add(part, f"{name} ReLU backward", 0, 2 * y.bytes, RELU_BACK)
        mask = y.bytes if relu else 0
        if needs_dx:
            self.product(part, f"{name} dx", flops, y.bytes + mask + HALF * weights
                         + x.bytes * (2 if twice else 1), "backward")
            mask = 0
            if twice:
                self.add(part, f"{name} sum of gradients", 0, 2 * x.bytes, JOIN)
        self.product(part, f"{name} dw", flops, y.bytes + mask + x.bytes + FULL * weights,
                     "backward")
        if bias:
            self.add(part, f"{name} db", 0, y.bytes)
        self.add(part, f"{name} weights backward", 0, rounded + scaled, WEIGHTS)
        return y

    def linear(self, part, name, rows, into, out, relu):
        weights, flops = into * out, 2 * rows * into * out
        size = HALF * (rows * (into + out) + weights)
        self.product(part, f"{name} forward", flops, size, "forward")
        self.product(part, f"{name} dx", flops, size, "backward")
        self.product(part, f"{name} dw", flops, size + HALF * weights, "backward")
        self.add(part, f"{name} weights", 0, 2 * (FULL + HALF) * weights, WEIGHTS)
        if relu:
            self.add(part, f"{name} ReLU", 0, 2 * HALF * rows * out, AFTER)
            self.add(part, f"{name} ReLU backward", 0, 2 * HALF * rows * out, RELU_BACK)
        self.trainable += weights + out

    def pixels(self, image):
        count = image.values
        self.add("input", "normalise", 0, count + HALF * count)

    def resnet(self, image):
        part = "backbone, forward only"
        x = self.conv(part, "stem", image, 64, 7, 2, trained=False)
        half = Map(x.n, 64, -(-x.height // 2), -(-x.width // 2))
        self.add(part, "max pooling", 0, x.bytes + half.bytes)
        x, outputs = half, []
        for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            trained = stage > 0
            part = "backbone, C3 to C5" if trained else "backbone, forward only"
            for index in range(blocks):
                name = f"C{stage + 2}.{index}"
                # detectron2's networks have the stride in the first 1x1 convolution.
                stride = 2 if stage > 0 and index == 0 else 1
                first = stage == 1 and index == 0  # its input is frozen
                fixed = {"trained": trained, "needs_dx": not first}
                if index == 0:
                    self.conv(part, f"{name} shortcut", x, 4 * width, 1, stride, relu=False,
                              twice=not first, **fixed)
                y = self.conv(part, f"{name} conv1", x, width, 1, stride, twice=not first, **fixed)
                y = self.conv(part, f"{name} conv2", y, width, 3, trained=trained)
                x = self.conv(part, f"{name} conv3", y, 4 * width, add=True, trained=trained)
            outputs.append(x)
        return outputs

    def fpn(self, c):
        part, p, coarser = "FPN", [], None
        for level in (3, 2, 1, 0):
            name = f"P{level + 2}"
            inner = self.conv(part, f"{name} lateral", c[level], 256, relu=False, bias=True,
                              add=coarser is not None, needs_dx=level > 0)
            if coarser:
                self.add(part, f"{name} upsampled", 0, coarser.bytes + inner.bytes, UPSAMPLE)
                self.add(part, f"{name} upsampled backward", 0, coarser.bytes + inner.bytes)
            p.insert(0, self.conv(part, f"{name} output", inner, 256, 3, relu=False, bias=True,
                                  twice=level > 0))
            coarser = inner
        top = p[-1]
        p.append(Map(top.n, 256, -(-top.height // 2), -(-top.width // 2)))
        self.add(part, "P6 and its gradient", 0, 2 * 2 * p[-1].bytes + top.bytes)
        return p

    def rpn(self, maps, a):
        """Adds the forward pass over the maps, and the backward pass from the sampled anchors."""
        head, anchors, before = "RPN head", 0, 0
        for number, level in enumerate(maps):
            name = f"P{number + 2}"
            hidden = self.conv(head, f"{name} conv", level, 256, 3, trained=False)
            self.conv(head, f"{name} logits and deltas", hidden, 5 * CELLS, trained=False)
            places = CELLS * level.height * level.width
            anchors += places
            before += min(places, 2000)
        whole, rows = sum(m.bytes for m in maps), a.anchors
        pixels = HALF * rows * 9 * 256
        self.add(head, "pixels around the anchors", 0, 2 * pixels, DRAWN)
        # The gradient of a map is written by the first layer that computes one.
        self.add(head, "gradients around the anchors", 0, whole + 2 * pixels)
        self.linear(head, "conv of the anchors", rows, 9 * 256, 256, relu=True)
        self.linear(head, "logits of the anchors", rows, 256, CELLS, relu=False)
        self.linear(head, "deltas of the anchors", rows, 256, 4 * CELLS, relu=False)
        part = "anchors, matching, RPN loss"
        # Two passes: the best anchor of each object, then the best object of each anchor, with 16
        # operations per pair. All images have the same anchors.
        self.add(part, "matching", 2 * 16 * a.batch * a.objects * anchors,
                 anchors * 2 * 4 * FULL + a.batch * anchors * (INDEX + 1), rate=FP32)
        self.add(part, "draw", 0, 2 * a.batch * anchors)
        logits = a.batch * anchors
        self.add(part, "logits and deltas together, fp32", 0, 5 * logits * (HALF + FULL))
        self.add(part, "levels put together", 0, 5 * logits * 2 * HALF, LEVELS)
        self.add(part, "apart", 0, 5 * logits * 2 * FULL, LEVELS)
        part = "proposals"
        self.add(part, "best of each level", 0, FULL * logits + 2 * INDEX * a.batch * before)
        self.add(part, "keys", 0, logits * INDEX, SELECT)
        for digit in range(8):
            self.add(part, f"digit {digit} of the 2,000th", 0, logits * INDEX, SELECT)
        self.add(part, "those above it", 0, logits * INDEX, SELECT)
        self.add(part, "decode", 20 * a.batch * before, a.batch * before * 12 * FULL, rate=FP32)
        pairs = sum(min(CELLS * m.height * m.width, 2000) ** 2 / 2 for m in maps) * a.batch
        self.add(part, "IoU of the pairs for NMS", 16 * pairs, pairs / 4, rate=FP32)
        self.add(part, "matching of the regions", 16 * a.batch * a.objects * 1000,
                 a.batch * 1000 * (4 * FULL + INDEX + 1), rate=FP32)

    def pool(self, name, maps, regions, size):
        """Each map is read or updated as a whole; four samples per cell, each from four pixels."""
        part, cells = "ROIAlign", regions * size * size * 256
        whole = sum(m.bytes for m in maps[:4])
        self.add(part, f"{name} forward", 4 * 8 * cells, whole + HALF * cells, rate=FP32)
        self.add(part, f"{name} backward", 4 * 8 * cells, 2 * whole + HALF * cells, rate=FP32)

    def box_head(self, a):
        part, rows = "box head", a.boxes
        pooled = HALF * rows * 256 * 49
        self.add(part, "regions as (C, H, W)", 0, 4 * pooled, FLATTEN)
        self.linear(part, "fc6", rows, 256 * 49, 1024, relu=True)
        self.linear(part, "fc7", rows, 1024, 1024, relu=True)
        self.linear(part, "cls_score", rows, 1024, a.classes + 1, relu=False)
        self.linear(part, "bbox_pred", rows, 1024, 4 * a.classes, relu=False)
        self.add(part, "losses", 0, 4 * FULL * rows * (5 * a.classes + 1))

    def mask_head(self, a):
        part = "mask head"
        x = Map(a.masks, 256, 14, 14)
        for i in range(4):
            x = self.conv(part, f"conv{i}", x, 256, 3, bias=True)
        weights, flops = 256 * 256 * 4, 2 * x.values * 256 * 4
        y = Map(a.masks, 256, 28, 28)
        size = x.bytes + y.bytes + HALF * weights
        self.product(part, "deconv forward", flops, size, "forward")
        self.product(part, "deconv dx", flops, size + y.bytes, "backward")
        self.product(part, "deconv dw", flops, size + HALF * weights, "backward")
        self.add(part, "deconv db", 0, y.bytes)
        self.add(part, "deconv bias and ReLU", 0, 4 * y.bytes, AFTER)
        self.add(part, "deconv ReLU backward", 0, 2 * y.bytes, RELU_BACK)
        self.add(part, "deconv weights", 0, 2 * (FULL + HALF) * weights, WEIGHTS)
        self.trainable += weights + 256
        # A product of each region's pixels with the weights of its own class.
        flops, pixels = 2 * y.values, y.bytes + HALF * a.masks * 784
        self.product(part, "own logits forward", flops, pixels, "forward")
        self.product(part, "own logits dx", flops, pixels, "backward")
        self.product(part, "own logits dw", flops, pixels, "backward")
        self.trainable += (256 + 1) * a.classes
        self.add(part, "targets", 0, 2 * FULL * a.masks * 784)

    # ---------------------------------------------------------------- what is printed

    def rows(self, extra, key):
        """Returns key(kernel) -> FLOPs, bytes, seconds on each GPU, in the order of the step: for
        the kernels of the roofline, or if `extra`, for the kernels that ours adds."""
        rows = {}
        for kernel in self.kernels:
            if bool(kernel.extra) == extra:
                row = rows.setdefault(key(kernel), [0, 0] + [0] * len(GPUS))
                figures = [kernel.flops, kernel.bytes, *map(kernel.seconds, GPUS)]
                rows[key(kernel)] = [a + b for a, b in zip(row, figures)]
        return rows

    def totals(self, extra):
        return [sum(column) for column in zip(*self.rows(extra, lambda k: k.part).values())]


def line(name, row):
    return (f"| {name} | {row[0] / 1e12:.2f} | {row[1] / 1e9:.2f} | "
            + " | ".join(f"{1e3 * s:.2f}" for s in row[2:]) + " |")


def tables(step, a):
    need, adds = step.totals(False), step.totals(True)
    yield f"| {a.batch} images of {a.width} x {a.height} | TFLOP | GB | H100, ms | H200, ms |"
    yield "|---|---|---|---|---|"
    for part, row in step.rows(False, lambda k: k.part).items():
        yield line(part, row)
    yield line("**the roofline**", need)
    count = sum(1 for k in step.kernels if k.extra)
    yield line(f"what ours adds, {count} kernels", adds)
    both = [x + y for x, y in zip(need, adds)]
    yield line("**ours at best**", both)
    images = [f"{a.batch / s:.0f}" for s in need[2:]], [f"{a.batch / s:.0f}" for s in both[2:]]
    yield f"| images/s of the roofline | | | {' | '.join(images[0])} |"
    yield f"| images/s of ours at best | | | {' | '.join(images[1])} |"
    yield ""
    yield "| what ours adds, by cost | GB | H100, ms | H200, ms |"
    yield "|---|---|---|---|"
    for why, row in sorted(step.rows(True, lambda k: k.extra).items(), key=lambda r: -r[1][2]):
        yield f"| {why} | {row[1] / 1e9:.2f} | {1e3 * row[2]:.2f} | {1e3 * row[3]:.2f} |"
    if a.batch == MLPERF_BATCH:
        need_ms, both_ms = 1e3 * need[2], 1e3 * both[2]
        yield ""
        yield (f"MLPerf's step on an H100: {MLPERF_STEP_MS} ms, of which {MLPERF_COMPUTE_MS:.0f} "
               f"compute by the model of scaling.md; the roofline is "
               f"{100 * need_ms / MLPERF_STEP_MS:.0f} and {100 * need_ms / MLPERF_COMPUTE_MS:.0f} "
               f"% of them, ours at best {100 * both_ms / MLPERF_STEP_MS:.0f} and "
               f"{100 * both_ms / MLPERF_COMPUTE_MS:.0f} %. As far from its best as MLPerf's is "
               f"from the roofline, ours would compute for "
               f"{MLPERF_COMPUTE_MS * both_ms / need_ms:.0f} ms.")


def main():
    arguments = argparse.ArgumentParser(description=__doc__,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default, doc in (("batch", 12, "number of images"),
                               ("height", 800, "padded height"),
                               ("width", 1344, "padded width"),
                               ("classes", 80, "number of classes"),
                               ("objects", 8, "objects per image"),
                               ("boxes", 0, "regions of the box head; 0 = 512 per image"),
                               ("masks", 0, "regions of the mask head; 0 = a quarter as many"),
                               ("anchors", 0, "sampled for the RPN's loss; 0 = 256 per image")):
        arguments.add_argument(f"--{name}", type=int, default=default, help=f"{doc} ({default})")
    arguments.add_argument("--kernels", action="store_true")
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--check", metavar="PAGE")
    a = arguments.parse_args()
    a.boxes = a.boxes or 512 * a.batch
    a.masks = a.masks or a.boxes // 4
    a.anchors = a.anchors or 256 * a.batch
    step = Step(a)
    if a.json:
        need, adds = step.totals(False), step.totals(True)
        return print(json.dumps({
            "matrix_flops": step.matrix, "trainable": step.trainable, "kernels": len(step.kernels),
            "roofline": {"flops": need[0], "bytes": need[1], "seconds": dict(zip(GPUS, need[2:]))},
            "added": {"bytes": adds[1], "seconds": dict(zip(GPUS, adds[2:]))}}))
    if a.kernels:
        print(f"{'':<28}{'':<34}{'GFLOP':>9}{'MB':>9}{'H100 us':>9}{'H200 us':>9}")
        for k in step.kernels:
            times = "".join(f"{1e6 * k.seconds(gpu):>9.1f}" for gpu in GPUS)
            print(f"{k.part:<28}{k.name:<34}{k.flops / 1e9:>9.1f}{k.bytes / 1e6:>9.1f}{times}"
                  + (f"  added: {k.extra}" if k.extra else ""))
        return None
    text = "\n".join(tables(step, a))
    if not a.check:
        return print(text)
    with open(a.check) as page:
        shown = page.read()
    missing = [row for row in text.splitlines() if row not in shown.splitlines()]
    if missing:
        sys.exit(f"{a.check} lacks lines of the output of tests/bench/roofline.py:\n" +
                 "\n".join(missing))
    return print(f"{a.check} contains the tables")


if __name__ == "__main__":
    main()
