"""What pycocotools makes of the evaluations listed in a JSON file (pycocotools_figures_test.cpp
writes it): IN OUT.
"""
import contextlib
import io
import json
import sys

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def evaluated(case):
    truth = COCO(case["gt"])
    found = truth.loadRes(case["dt"])
    run = COCOeval(truth, found, case["iou"])
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


def main():
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    with contextlib.redirect_stdout(io.StringIO()):
        answers = [evaluated(case) for case in cases]
    with open(sys.argv[2], "w") as f:
        json.dump(answers, f)


main()
