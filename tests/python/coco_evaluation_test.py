"""COCOeval as other projects use it, with merged shards, subclasses and changed dicts; and invalid
input."""

from __future__ import annotations

import copy
import io
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

from millrace.coco import COCO, COCOeval, Params, mask


def quiet(run: Any) -> Any:
    with redirect_stdout(io.StringIO()):
        return run()


def ground_truth(data: Any) -> COCO:
    coco = COCO()
    coco.dataset = copy.deepcopy(data)
    quiet(coco.createIndex)
    return coco


def evaluated(gt: COCO, dt: Any, iou: str = "bbox", cls: Any = COCOeval, **params: Any) -> COCOeval:
    def run() -> COCOeval:
        found = dt if isinstance(dt, COCO) else gt.loadRes(dt)
        made: COCOeval = cls(gt, found, iou)
        for name, value in params.items():
            setattr(made.params, name, value)
        made.evaluate()
        made.accumulate()
        made.summarize()
        return made

    return quiet(run)


DATA = data_set(7)
FOUND = results(DATA, 7, "both")


@pytest.mark.parametrize("iou", ["bbox", "segm"])
def test_all_input_forms_give_same_result(iou: str) -> None:
    gt = ground_truth(DATA)
    usual = evaluated(gt, copy.deepcopy(FOUND), iou)
    touched = gt.loadRes(copy.deepcopy(FOUND))
    assert len(touched.anns) == len(FOUND)

    class OneByOne(COCOeval):
        def computeIoU(self, imgId: Any, catId: Any) -> Any:
            return super().computeIoU(imgId, catId)

    for other in (evaluated(gt, touched, iou), evaluated(gt, copy.deepcopy(FOUND), iou, OneByOne)):
        assert np.array_equal(other.stats, usual.stats)
        assert np.array_equal(other.eval["precision"], usual.eval["precision"])
        for a, b in zip(other.evalImgs, usual.evalImgs, strict=True):
            assert (a is None) == (b is None)
            assert a is None or all(np.array_equal(a[name], b[name]) for name in a)


def test_uses_ious_of_subclass() -> None:
    class Blind(COCOeval):
        def computeIoU(self, imgId: Any, catId: Any) -> Any:
            ious = super().computeIoU(imgId, catId)
            return ious * 0 if len(ious) else ious

    gt = ground_truth(DATA)
    assert evaluated(gt, copy.deepcopy(FOUND), cls=Blind).stats[0] == 0
    assert evaluated(gt, copy.deepcopy(FOUND)).stats[0] > 0


def test_merged_shards_match_whole_evaluation() -> None:
    gt = ground_truth(DATA)
    whole = evaluated(gt, copy.deepcopy(FOUND))
    parts, ids = [], []
    merged = COCOeval(gt, iouType="bbox")
    for begin in range(0, 12, 5):
        images = [image["id"] for image in DATA["images"][begin : begin + 5]]
        shard = [copy.deepcopy(one) for one in FOUND if one["image_id"] in images]
        merged.cocoDt = quiet(lambda shard=shard: gt.loadRes(shard))
        merged.params.imgIds = images
        quiet(merged.evaluate)
        shape = (-1, len(merged.params.areaRng), len(merged.params.imgIds))
        parts.append(np.asarray(merged.evalImgs).reshape(shape))
        ids += merged.params.imgIds
    order = np.argsort(ids)
    merged.evalImgs = list(np.concatenate(parts, axis=2)[..., order].flatten())
    merged.params.imgIds = sorted(ids)
    merged._paramsEval = copy.deepcopy(merged.params)
    quiet(merged.accumulate)
    quiet(merged.summarize)
    assert np.array_equal(merged.stats, whole.stats)


def test_accumulates_subset_of_parameters() -> None:
    gt = ground_truth(DATA)
    run = evaluated(gt, copy.deepcopy(FOUND))
    whole = run.eval["precision"]
    for name, wanted, axis in [
        ("catIds", [3, 18], [1, 3]),
        ("maxDets", [10, 1], [1, 0]),
        ("areaRng", run.params.areaRng[1:3], [1, 2]),
    ]:
        p = copy.deepcopy(run.params)
        setattr(p, name, wanted)
        quiet(lambda p=p: run.accumulate(p))
        place = {"catIds": 2, "areaRng": 3, "maxDets": 4}[name]
        assert np.array_equal(run.eval["precision"], np.take(whole, axis, axis=place)), name
        assert run.eval["params"] is p
    p = copy.deepcopy(run.params)
    p.recThrs = p.recThrs[::10]
    quiet(lambda: run.accumulate(p))
    assert np.array_equal(run.eval["precision"], whole[:, ::10])


def test_uses_changed_dicts() -> None:
    gt = ground_truth(DATA)
    before = evaluated(gt, copy.deepcopy(FOUND)).stats
    for ann in gt.dataset["annotations"]:
        ann["area"] = 100.0
    after = evaluated(gt, copy.deepcopy(FOUND)).stats
    assert before[5] >= 0 or before[4] >= 0
    assert after[4] == -1 and after[5] == -1 and after[3] > 0
    given = copy.deepcopy(FOUND)
    dt = quiet(lambda: gt.loadRes(given))
    for one in given:
        one["category_id"] = 7
    assert evaluated(gt, dt).stats[0] == 0


def test_accepts_string_ids() -> None:
    data, found = copy.deepcopy(DATA), copy.deepcopy(FOUND)
    for image in data["images"]:
        image["id"] = f"{image['id']:06}"
    for one in (*data["annotations"], *found):
        one["image_id"] = f"{one['image_id']:06}"
    plain = evaluated(ground_truth(DATA), copy.deepcopy(FOUND)).stats
    assert np.array_equal(evaluated(ground_truth(data), found).stats, plain)


def test_supports_merged_categories_and_use_segm() -> None:
    gt = ground_truth(DATA)
    run = evaluated(gt, copy.deepcopy(FOUND), useCats=0)
    assert run.eval["counts"][2] == 1
    assert evaluated(gt, copy.deepcopy(FOUND), "segm", useSegm=0).params.iouType == "bbox"


def test_missing_limits_repeat_last_limit() -> None:
    run = evaluated(ground_truth(DATA), copy.deepcopy(FOUND), maxDets=[1, 10])
    assert "maxDets= 10" in str(run) and run.stats[0] > 0 and run.stats[7] == run.stats[8]


def test_default_parameters_match_pycocotools() -> None:
    p = Params("bbox")
    assert p.iouThrs.tolist()[8] == 0.8999999999999999 and len(p.recThrs) == 101
    assert p.maxDets == [1, 10, 100] and p.areaRngLbl == ["all", "small", "medium", "large"]
    assert Params("keypoints").maxDets == [20] and len(Params("keypoints").kpt_oks_sigmas) == 17
    with pytest.raises(Exception, match="iouType not supported"):
        Params("boxes")


def changed(index: int, **fields: Any) -> Any:
    found = copy.deepcopy(FOUND)
    for name, value in fields.items():
        if value is None:
            del found[index][name]
        else:
            found[index][name] = value
    return found


SMALL = mask.encode(np.ones((5, 5), np.uint8))
ODD = [[1, 2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("fields", "iou", "error", "words"),
    [
        ({"score": None}, "bbox", KeyError, r"detections\[3\]: 'score' is missing"),
        ({"category_id": None}, "bbox", KeyError, r"detections\[3\]: 'category_id' is missing"),
        ({"score": float("nan")}, "bbox", ValueError, r"detections\[3\]: 'score' is NaN"),
        ({"score": "x"}, "bbox", TypeError, r"detections\[3\]: 'score' is not a number"),
        ({"bbox": [1, 2, 3]}, "bbox", ValueError, r"detections\[3\]: 'bbox' has 3 numbers"),
        ({"bbox": [1, 2, 3, float("nan")]}, "bbox", ValueError, "is NaN"),
        ({"segmentation": SMALL}, "segm", ValueError, r"\[3\].*5 x 5, .*120 x 120"),
        ({"segmentation": {"size": [120, 120], "counts": b"1"}}, "segm", ValueError, "add up"),
        ({"segmentation": {"size": [120, 120]}}, "segm", KeyError, "counts"),
        ({"segmentation": ODD}, "segm", ValueError, r"\[3\].* 5 numbers"),
    ],
)
@pytest.mark.parametrize("touched", [False, True])
def test_reports_invalid_detections(
    fields: Any, iou: str, error: type[Exception], words: str, touched: bool
) -> None:
    gt = ground_truth(DATA)
    dt = quiet(lambda: gt.loadRes(changed(3, **fields)))
    if touched:
        words = words.split(r"\[3\]")[-1]  # then detections are numbered per image
        try:
            assert dt.anns
        except (ValueError, TypeError, KeyError):
            return
    with pytest.raises(error, match=words):
        evaluated(gt, dt, iou)


@pytest.mark.parametrize(
    ("fields", "iou", "error", "words"),
    [
        ({"bbox": None}, "bbox", KeyError, "'bbox' is missing"),
        ({"segmentation": None}, "segm", KeyError, "'segmentation' is missing"),
        ({"segmentation": ODD}, "segm", ValueError, "polygon.* 5 numbers"),
        ({"keypoints": [1, 2]}, "keypoints", ValueError, "'keypoints' has 2 numbers"),
        ({"keypoints": [1, 2, 2]}, "keypoints", ValueError, "1 keypoints, .*17 sigmas"),
        ({"num_keypoints": None}, "keypoints", KeyError, "'num_keypoints' is missing"),
    ],
)
def test_reports_invalid_objects(
    fields: Any, iou: str, error: type[Exception], words: str
) -> None:
    data = copy.deepcopy(DATA)
    for ann in data["annotations"]:
        for name, value in fields.items():
            if value is None:
                del ann[name]
            else:
                ann[name] = value
    found = results(DATA, 7, "keypoints" if iou == "keypoints" else "both")
    gt = ground_truth(data)
    with pytest.raises(error, match=words):
        evaluated(gt, found, iou)


def test_compares_masks_smaller_than_image() -> None:
    data = copy.deepcopy(DATA)
    for ann in data["annotations"]:
        ann["segmentation"] = SMALL
    found = [
        {"image_id": a["image_id"], "category_id": a["category_id"], "score": 1.0}
        | {"segmentation": dict(SMALL)}
        for a in data["annotations"]
    ]
    run = evaluated(ground_truth(data), found, "segm")
    assert run.stats[6] > 0.5


def test_rejects_calls_in_wrong_order() -> None:
    with pytest.raises(Exception, match="run accumulate"):
        COCOeval(iouType="bbox").summarize()
    with pytest.raises(ValueError, match="NaN"):
        evaluated(ground_truth(DATA), copy.deepcopy(FOUND), iouThrs=np.array([0.5, np.nan]))
    run = evaluated(ground_truth(DATA), copy.deepcopy(FOUND))
    run.evalImgs = run.evalImgs[:-1]
    with pytest.raises(ValueError, match="evalImgs has"):
        quiet(run.accumulate)
