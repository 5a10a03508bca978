"""Compares metrics, tables, matches and printed text with pycocotools itself, bit for bit."""

from __future__ import annotations

import copy
import io
import json
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

import millrace.coco
from millrace.coco import COCO, COCOeval

pycocotools = pytest.importorskip("pycocotools.cocoeval")
from pycocotools.coco import COCO as TheirCOCO  # noqa: E402

KINDS = {"bbox": "bbox", "segm": "both", "keypoints": "keypoints"}


def made(coco: type, data: dict[str, Any]) -> Any:
    one = coco()
    one.dataset = copy.deepcopy(data)
    one.createIndex()
    return one


def evaluated(coco: type, evaluator: type, data: Any, found: Any, iou: str, change: Any) -> Any:
    text = io.StringIO()
    with redirect_stdout(text):
        gt = made(coco, data) if isinstance(data, dict) else coco(str(data))
        dt = gt.loadRes(copy.deepcopy(found) if isinstance(found, list) else str(found))
        run = evaluator(gt, dt, iou)
        change(run.params)
        run.evaluate()
        run.accumulate()
        if len(run.params.maxDets) >= 3 or iou == "keypoints":
            run.summarize()
    return run, re.sub(r"t=\d+\.\d+s", "t=", text.getvalue())


def equal(ours: Any, theirs: Any, place: str = "") -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), place
        for key in theirs:
            equal(ours[key], theirs[key], f"{place}/{key}")
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), place
        for n, (a, b) in enumerate(zip(ours, theirs)):
            equal(a, b, f"{place}/{n}")
    elif isinstance(theirs, np.ndarray):
        assert np.shape(ours) == theirs.shape, (place, np.shape(ours), theirs.shape)
        # numpy's exp, which OKS uses, differs in the last bit from machine to machine.
        close = np.allclose(ours, theirs, rtol=1e-14, atol=0) if place.startswith("oks") else None
        assert close or np.array_equal(ours, theirs), (place, ours, theirs)
    else:
        assert ours == theirs, (place, ours, theirs)


def compare(data: Any, found: Any, iou: str, change: Any = lambda p: None) -> None:
    ours, our_text = evaluated(COCO, COCOeval, data, found, iou, change)
    theirs, their_text = evaluated(TheirCOCO, pycocotools.COCOeval, data, found, iou, change)
    for name in ("precision", "recall", "scores", "counts"):
        equal(ours.eval[name], theirs.eval[name], name)
    equal(ours.stats, theirs.stats, "stats")
    assert our_text == their_text
    equal(ours.evalImgs, theirs.evalImgs, "evalImgs")
    equal(ours.ious, theirs.ious, "oks" if iou == "keypoints" else "ious")
    for name, value in vars(theirs._paramsEval).items():
        equal(getattr(ours._paramsEval, name), value, name)


def odd(seed: int) -> Any:
    """Returns a function that sets unusual parameters."""

    def change(p: Any) -> None:
        rng = np.random.default_rng(seed)
        if rng.random() < 0.4:
            p.imgIds = rng.permutation(p.imgIds)[: rng.integers(1, len(p.imgIds))].tolist()
        if rng.random() < 0.4:
            p.catIds = rng.permutation(p.catIds)[: rng.integers(1, len(p.catIds))].tolist()
        if rng.random() < 0.4:
            p.iouThrs = np.sort(rng.random(rng.integers(1, 20)))
            if rng.random() < 0.3:
                p.iouThrs[-1] = 1
        if rng.random() < 0.4:
            p.recThrs = np.sort(rng.random(rng.integers(1, 40)))
        if rng.random() < 0.4:
            p.maxDets = rng.integers(1, 12, 3).tolist()
        if rng.random() < 0.4:
            p.areaRng = [[0, 1e10], [0, 300], [300, 700.5], [100, 200], [50, 1e4]]
            p.areaRngLbl = ["all", "small", "medium", "large", "more"]
        # With merged categories, pycocotools finds no keypoints.
        if rng.random() < 0.3 and p.iouType != "keypoints":
            p.useCats = 0
            p.catIds = sorted(p.catIds)
        if p.iouType == "keypoints":
            p.areaRngLbl = p.areaRngLbl[: len(p.areaRng)]

    return change


@pytest.mark.parametrize("iou", KINDS)
@pytest.mark.parametrize("seed", range(25))
def test_dicts_match_pycocotools(iou: str, seed: int) -> None:
    data = data_set(seed)
    compare(data, results(data, seed, KINDS[iou]), iou)


@pytest.mark.parametrize("iou", KINDS)
@pytest.mark.parametrize("seed", range(60))
def test_unusual_parameters_match_pycocotools(iou: str, seed: int) -> None:
    data = data_set(seed)
    compare(data, results(data, seed, KINDS[iou]), iou, odd(seed))


@pytest.mark.parametrize("iou", ["bbox", "segm"])
@pytest.mark.parametrize("kind", ["bbox", "segm", "both"])
@pytest.mark.parametrize("seed", range(6))
def test_files_match_pycocotools(tmp_path: Path, iou: str, kind: str, seed: int) -> None:
    data = data_set(seed)
    found = results(data, seed, kind)
    for one in found:
        if "segmentation" in one and isinstance(one["segmentation"]["counts"], bytes):
            one["segmentation"]["counts"] = one["segmentation"]["counts"].decode()
    for one in data["annotations"]:
        if isinstance(one["segmentation"], dict):
            counts = one["segmentation"]["counts"]
            one["segmentation"]["counts"] = counts if isinstance(counts, str) else counts.decode()
    (tmp_path / "gt.json").write_text(json.dumps(data))
    (tmp_path / "dt.json").write_text(json.dumps(found))
    compare(tmp_path / "gt.json", tmp_path / "dt.json", iou)
    compare(tmp_path / "gt.json", found, iou, odd(seed))


def test_is_not_pycocotools_itself() -> None:
    assert millrace.coco.COCOeval is not pycocotools.COCOeval
