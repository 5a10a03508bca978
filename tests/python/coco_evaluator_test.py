"""The class Evaluator: image by image, in several threads and processes."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from typing import Any

import numpy as np
import pytest
from coco_random import data_set, results

from millrace.coco import COCO, COCOeval, Evaluator, mask

DATA = data_set(5)


def whole(found: Any, iou: str) -> COCOeval:
    with redirect_stdout(io.StringIO()):
        gt = COCO()
        gt.dataset = DATA
        gt.createIndex()
        run = COCOeval(gt, gt.loadRes(found), iou)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


def add(evaluator: Evaluator, found: Any, image: int, form: int) -> None:
    of_image = [one for one in found if one["image_id"] == image]
    boxes: Any = None
    masks: Any = None
    if of_image and "bbox" in of_image[0]:
        boxes = np.array([one["bbox"] for one in of_image])
    if of_image and "segmentation" in of_image[0]:
        masks = [one["segmentation"] for one in of_image]
        if form == 1:
            masks = mask.decode(masks).transpose(2, 0, 1)
        if form == 2:
            masks = np.ascontiguousarray(mask.decode(masks).transpose(2, 0, 1)).astype(bool)
    scores = [one["score"] for one in of_image]
    labels = np.array([one["category_id"] for one in of_image], dtype=[int, np.int32][form % 2])
    evaluator.add(image, boxes, scores, labels, masks)


@pytest.mark.parametrize(("iou", "kind"), [("bbox", "bbox"), ("segm", "segm")])
def test_threads_and_shards_match_whole_evaluation(iou: Any, kind: str) -> None:
    found = results(DATA, 5, kind)
    expected = whole([dict(one) for one in found], iou)
    shards = [Evaluator(DATA, iou) for _ in range(3)]
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(add, shards[n % 3], found, image["id"], n % 3)
            for n, image in enumerate(DATA["images"])
        ]
        for job in jobs:
            job.result()
    shards[1].merge(shards[2].partial())
    shards[0].merge(shards[1].partial())
    result = shards[0].result()
    assert len(shards[0]) == len(DATA["images"])
    assert np.array_equal(result.stats, expected.stats)
    assert np.array_equal(result.precision, expected.eval["precision"])
    assert np.array_equal(result.scores, expected.eval["scores"])
    assert result.category_ids.tolist() == [1, 3, 7, 18]


def test_accepts_box_formats_and_empty_images() -> None:
    image = DATA["annotations"][0]["image_id"]
    box = np.array(DATA["annotations"][0]["bbox"])
    label = np.array([DATA["annotations"][0]["category_id"]])
    corners, sizes = Evaluator(DATA), Evaluator(DATA)
    sizes.add(image, box[None], [1.0], label)
    corners.add(image, np.r_[box[:2], box[:2] + box[2:]][None], [1.0], label, box_format="xyxy")
    assert np.allclose(corners.result().stats, sizes.result().stats)
    assert sizes.result(all_images=True).stats[0] < sizes.result().stats[0]
    wide = np.zeros((2, 8), np.float32)
    wide[:, ::2] = box
    strided = Evaluator(DATA)
    strided.add(image, wide[:1, ::2], np.float32([1]), label)
    assert np.array_equal(strided.result().stats, sizes.result().stats)


BOX, LABEL = np.zeros((1, 4)), np.array([3])


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ((BOX[:, :3], [1.0], LABEL), ValueError, r"boxes: .*\(1, 3\)"),
        ((BOX, [1.0, 2], LABEL), ValueError, "boxes has 1 .*scores has 2"),
        ((BOX, [1.0], [3, 3]), ValueError, "labels has 2 .*scores has 1"),
        ((BOX * np.nan, [1.0], LABEL), ValueError, r"boxes\[0, 0\]"),
        ((BOX, [np.nan], LABEL), ValueError, r"scores\[0\] is NaN"),
        ((BOX, [1.0], [1.5]), TypeError, "labels: .*integers"),
        ((BOX.astype(np.float16), [1.0], LABEL), TypeError, "boxes: .*float32"),
        ((None, [1.0], LABEL), ValueError, "no box, mask"),
        ((BOX, [1.0], LABEL, np.zeros((1, 3, 3))), ValueError, "bool or uint8"),
        ((BOX, [1.0], LABEL, np.zeros((2, 3, 3), bool)), ValueError, "masks has 2"),
        ((BOX, [1.0], LABEL, [{"size": [2, 2], "counts": b"1"}]), ValueError, r"masks\[0\]"),
    ],
)
def test_reports_invalid_arrays(given: Any, error: type[Exception], words: str) -> None:
    evaluator = Evaluator(DATA)
    with pytest.raises(error, match=words):
        evaluator.add(DATA["images"][0]["id"], *given)
    assert len(evaluator) == 0


def test_rejects_invalid_images_and_states() -> None:
    evaluator, image = Evaluator(DATA), DATA["images"][0]["id"]
    evaluator.add(image, BOX, [1.0], LABEL)
    with pytest.raises(ValueError, match=f"image {image}: already added"):
        evaluator.add(image, BOX, [1.0], LABEL)
    with pytest.raises(ValueError, match="999999"):
        evaluator.add(999999, BOX, [1.0], LABEL)
    with pytest.raises(ValueError, match="two partial"):
        evaluator.merge(evaluator.partial())
    with pytest.raises(ValueError, match="damaged"):
        evaluator.merge(b"nothing")
    with pytest.raises(ValueError, match="other options"):
        Evaluator(DATA, "segm").merge(evaluator.partial())
    with pytest.raises(FileNotFoundError):
        Evaluator("/no/such/file.json")
    with pytest.raises(TypeError, match="int"):
        Evaluator(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="iou_type"):
        Evaluator(DATA, "boxes")  # type: ignore[arg-type]
