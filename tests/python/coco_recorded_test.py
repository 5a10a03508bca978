"""Compares with metrics recorded from pycocotools 2.0.11, bit for bit. Run as a program where
pycocotools is installed, this file records them again."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

RECORD = Path(__file__).with_name("recorded") / "coco.json"


def evaluate(coco: Any, evaluator: Any, case: Any) -> dict[str, Any]:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        gt = coco()
        gt.dataset = copy.deepcopy(case["data"])
        gt.createIndex()
        run = evaluator(gt, gt.loadRes(copy.deepcopy(case["results"])), case["iou"])
        for name, value in case["params"].items():
            setattr(run.params, name, np.array(value) if name.endswith("Thrs") else value)
        run.evaluate()
        run.accumulate()
        run.summarize()
    tables = [np.ascontiguousarray(run.eval[n]) for n in ("precision", "recall", "scores")]
    return {
        "stats": run.stats.tolist(),
        "tables": [hashlib.sha256(t.tobytes()).hexdigest()[:16] for t in tables],
        "lines": text.getvalue().splitlines()[-len(run.stats) :],
    }


CASES = json.loads(RECORD.read_text()) if RECORD.exists() else []


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["name"])
def test_matches_recorded(case: Any) -> None:
    from millrace.coco import COCO, COCOeval

    assert evaluate(COCO, COCOeval, case) == case["answer"]


def record() -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    cases: list[Any] = []
    kinds = {"bbox": "bbox", "segm": "both", "keypoints": "keypoints"}
    odd = {
        "iouThrs": [0.1, 0.5, 0.75, 1.0],
        "recThrs": [0, 0.3, 1],
        "maxDets": [1, 3, 5],
        "areaRng": [[0, 1e10], [0, 200], [200, 500.5], [100, 300]],
    }
    for iou, kind in kinds.items():
        for name, params in (("usual", {}), ("odd", odd), ("joined", {"useCats": 0})):
            if iou == "keypoints" and name != "usual":
                continue
            seed = len(cases)
            data = data_set(seed, images=4, objects=4)
            found = results(data, seed, kind)[:24]
            for one in (*data["annotations"], *found):
                shape = one.get("segmentation")
                if isinstance(shape, dict) and isinstance(shape["counts"], bytes):
                    shape["counts"] = shape["counts"].decode()
                if iou != "keypoints":
                    one.pop("keypoints", None)
                if iou == "bbox":
                    one.pop("segmentation", None)
            case = {"name": f"{iou}-{name}", "iou": iou, "params": params, "data": data}
            case["results"] = found
            case["answer"] = evaluate(COCO, COCOeval, case)
            cases.append(case)
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")


if __name__ == "__main__":
    record()
