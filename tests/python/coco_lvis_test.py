"""LVIS: federated categories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

from millrace.coco import LVIS, LVISEval, LVISResults

KINDS = [("bbox", "bbox"), ("segm", "segm"), ("segm", "both")]


def plain(records: list[Any]) -> None:
    for one in records:
        shape = one.get("segmentation")
        if isinstance(shape, dict) and isinstance(shape["counts"], bytes):
            shape["counts"] = shape["counts"].decode()


def lvis_set(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    data = data_set(seed)
    plain(data["annotations"])
    for category, frequency in zip(data["categories"], "rcfr"):
        category["frequency"] = frequency
    for image in data["images"]:
        for name, most in (("neg_category_ids", 3), ("not_exhaustive_category_ids", 2)):
            ids = rng.choice([3, 1, 18, 7], rng.integers(0, most), replace=False)
            image[name] = ids.tolist()
    for ann in data["annotations"]:
        if rng.random() < 0.1:
            ann["ignore"] = 1
        if rng.random() < 0.1:
            ann["area"] = 0
    return data


def files(folder: Path, data: Any, found: Any) -> tuple[str, str]:
    plain(found)
    (folder / "gt.json").write_text(json.dumps(data))
    (folder / "dt.json").write_text(json.dumps(found))
    return str(folder / "gt.json"), str(folder / "dt.json")


def made(gt: str, dt: Any, iou: str, limit: int, touched: bool) -> LVISEval:
    truth = LVIS(gt)
    found = LVISResults(truth, dt, limit)
    if touched:
        assert truth.dataset and found.dataset
    run = LVISEval(truth, found, iou)
    run.run()
    return run


@pytest.mark.parametrize(("iou", "kind"), KINDS)
def test_files_and_lists_give_same_result(tmp_path: Path, iou: str, kind: str) -> None:
    data = lvis_set(3)
    found = results(data, 3, kind)
    gt, dt = files(tmp_path, data, found)
    from_file = made(gt, dt, iou, 300, False)
    assert len(from_file.get_results()) == 13 and "AR@300" in from_file.results
    for given, touched in ((found, False), (dt, True)):
        other = made(gt, given, iou, 300, touched)
        assert other.results == from_file.results
        assert np.array_equal(other.eval["precision"], from_file.eval["precision"])


def test_counts_misses_only_for_known_categories(tmp_path: Path) -> None:
    image = {"id": 1, "width": 100, "height": 100, "coco_url": "http://images/1.jpg"}
    lists = {"neg_category_ids": [], "not_exhaustive_category_ids": []}
    box = [10, 10, 50, 50]
    data = {
        "images": [image | lists],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": box, "area": 2500}],
        "categories": [{"id": c, "name": str(c), "frequency": "f"} for c in (1, 2)],
    }
    hit = {"image_id": 1, "category_id": 1, "bbox": box, "score": 0.5}
    miss = hit | {"bbox": [70, 70, 20, 20], "score": 0.9}
    other = miss | {"category_id": 2}

    def ap(found: Any) -> float:
        gt, dt = files(tmp_path, data, found)
        return float(made(gt, dt, "bbox", 300, False).results["AP"])

    assert ap([hit]) > 0.99
    assert ap([hit, other]) > 0.99  # category 2 was not annotated
    assert ap([hit, miss]) < 0.6
    data["images"][0]["not_exhaustive_category_ids"] = [1]  # type: ignore[index]
    assert ap([hit, miss]) > 0.99


def test_reports_invalid_input(tmp_path: Path) -> None:
    data = lvis_set(3)
    gt, _ = files(tmp_path, data, [])
    with pytest.raises(ValueError, match="iou_type"):
        LVISEval(gt, [], "keypoints")
    with pytest.raises(TypeError, match="lvis_gt"):
        LVISEval(3, [])
    with pytest.raises(TypeError, match="lvis_dt"):
        LVISEval(gt, 3)
    with pytest.raises(AssertionError, match="correspond"):
        LVISResults(gt, [{"image_id": -1, "category_id": 3, "bbox": [0, 0, 1, 1], "score": 1}])
    with pytest.raises(RuntimeError, match="accumulate"):
        LVISEval(gt, []).summarize()
    truth = LVIS(gt)
    del truth.dataset["images"][0]["neg_category_ids"]
    with pytest.raises(KeyError, match="neg_category_ids"):
        LVISEval(truth, []).run()
