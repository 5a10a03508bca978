"""Runs pycocotools on the cases in a JSON file and writes its results to another one.

usage: pycocotools_answers.py IN OUT    IN contains a list of evaluations
                                        (pycocotools_figures_test.cpp) or lists of masks by kind
                                        (pycocotools_masks_test.cpp)
"""
import contextlib
import io
import json
import sys

import numpy as np
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def boundary(rle):
    """The part of a mask that repeated erosion by 3 x 3 pixels removes, as in boundary-iou-api."""
    pixels = mask.decode(rle)
    left = np.pad(pixels, 1)
    for _ in range(max(int(round(0.02 * np.sqrt(sum(side**2 for side in pixels.shape)))), 1)):
        around = np.pad(left, 1)
        shifts = [around[y:y + left.shape[0], x:x + left.shape[1]]
                  for y in range(3) for x in range(3)]
        left = np.minimum.reduce(shifts)
    return mask.encode(np.asfortranarray(pixels - left[1:-1, 1:-1]))


class BoundaryEval(COCOeval):
    """boundary-iou-api's COCOeval: the smaller of mask and boundary IoU; mask IoU for crowds."""

    def computeIoU(self, image, category):  # noqa: N802
        overlaps = super().computeIoU(image, category)
        if len(overlaps) == 0:
            return overlaps
        p = self.params
        gt, dt = ([one for c in (p.catIds if not p.useCats else [category])
                   for one in side[image, c]] for side in (self._gts, self._dts))
        order = np.argsort([-one["score"] for one in dt], kind="mergesort")[:p.maxDets[-1]]
        crowd = [int(one["iscrowd"]) for one in gt]
        shapes = [[boundary(one["segmentation"]) for one in side]
                  for side in ([dt[i] for i in order], gt)]
        less = np.minimum(overlaps, mask.iou(*shapes, crowd))
        return np.where(np.array(crowd, dtype=bool), overlaps, less)


def evaluated(case):
    truth = COCO(case["gt"])
    found = truth.loadRes(case["dt"])
    of_boundaries = case["iou"] == "boundary"
    run = (BoundaryEval(truth, found, "segm") if of_boundaries
           else COCOeval(truth, found, case["iou"]))
    run.params.useCats = case["use_cats"]
    run.params.maxDets = case["max_dets"]
    run.evaluate()
    run.accumulate()
    out = {name: np.ascontiguousarray(run.eval[name]).ravel().tolist()
           for name in ("precision", "recall", "scores")}
    if len(case["max_dets"]) >= 3:
        run.summarize()
        out["stats"] = run.stats.tolist()
    return out


def text(rle):
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def facts(rle):
    return text(rle) | {"area": int(mask.area(rle)), "bbox": mask.toBbox(rle).tolist()}


def bitmap(c):
    pixels = np.array(c["pixels"], dtype=np.uint8).reshape(c["height"], c["width"])
    rle = mask.encode(np.asfortranarray(pixels))
    assert (mask.decode(rle) == (pixels != 0)).all()
    return facts(rle)


def group(c):
    dt, gt = ([{"size": c["size"], "counts": s.encode()} for s in c[side]]
              for side in ("found", "truth"))
    return {"union": text(mask.merge(dt)), "shared": text(mask.merge(dt, intersect=True)),
            "iou": mask.iou(dt, gt, c["crowd"]).ravel().tolist()}


def masks(cases):
    def polygons(c):
        return facts(mask.merge(mask.frPyObjects(c["parts"], c["height"], c["width"])))

    def box(c):
        return facts(mask.frPyObjects(np.array([c["box"]]), c["height"], c["width"])[0])

    def runs(c):
        return facts(mask.frPyObjects([c], *c["size"])[0])

    kinds = {"polygons": polygons, "boxes": box, "runs": runs, "bitmaps": bitmap, "groups": group}
    return {kind: [kinds[kind](c) for c in some] for kind, some in cases.items()}


with open(sys.argv[1]) as f:
    cases = json.load(f)
with contextlib.redirect_stdout(io.StringIO()):
    answers = [evaluated(case) for case in cases] if isinstance(cases, list) else masks(cases)
with open(sys.argv[2], "w") as f:
    json.dump(answers, f)
