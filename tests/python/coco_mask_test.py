"""Masks in run-length encoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from millrace.coco import mask


def bitmaps(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    height, width, count = rng.integers(1, 40, 3)
    return (rng.random((height, width, count)) < rng.random()).astype(np.uint8)


@pytest.mark.parametrize("seed", range(20))
def test_decoding_inverts_encoding(seed: int) -> None:
    pixels = bitmaps(seed)
    decoded = mask.decode(mask.encode(pixels))
    assert np.array_equal(decoded, pixels)
    assert decoded.flags.f_contiguous and decoded.dtype == np.uint8
    assert np.array_equal(mask.decode(mask.encode(pixels[:, :, 0])), pixels[:, :, 0])


def test_ignores_layout_and_nonzero_value() -> None:
    pixels = bitmaps(1)
    rles = mask.encode(np.asfortranarray(pixels))
    assert mask.encode(pixels) == rles
    assert mask.encode(pixels.astype(bool)) == rles
    assert mask.encode(pixels * 255) == rles
    wide = np.zeros((*pixels.shape[:2], pixels.shape[2] * 2), np.uint8)
    wide[:, :, ::2] = pixels
    assert mask.encode(wide[:, :, ::2]) == rles
    assert mask.encode(pixels[::-1, :, 0]) == mask.encode(pixels[::-1, :, 0].copy())


def test_matches_known_run_lengths() -> None:
    pixels = np.zeros((4, 5), np.uint8)
    pixels[1:3, 1:4] = 1
    assert mask.encode(pixels) == {"size": [4, 5], "counts": b"5220003"}
    rle = {"size": [4, 5], "counts": "5220003"}
    assert mask.area(rle) == 6 and isinstance(mask.area(rle), np.uint32)
    assert mask.toBbox(rle).tolist() == [1, 1, 3, 2]
    assert mask.area([rle, rle]).tolist() == [6, 6]
    uncompressed = {"size": [4, 5], "counts": [3, 2, 15]}
    assert mask.frPyObjects(uncompressed, 4, 5) == {"size": [4, 5], "counts": b"32?"}
    assert mask.frPyObjects([[0, 0, 2, 2]], 4, 5) == [{"size": [4, 5], "counts": b"0220<"}]
    assert mask.frPoly([[0, 0, 3, 3, 2, 2]], 4, 5) == [{"size": [4, 5], "counts": b"d0"}]


@pytest.mark.parametrize("seed", range(10))
def test_matches_pixel_computation(seed: int) -> None:
    pixels = bitmaps(seed)
    rles = mask.encode(pixels)
    flat = pixels.reshape(-1, pixels.shape[2]).astype(float)
    assert mask.area(rles).tolist() == flat.sum(0).tolist()
    union, both = mask.decode(mask.merge(rles)), mask.decode(mask.merge(rles, intersect=True))
    assert np.array_equal(union, pixels.max(2)) and np.array_equal(both, pixels.min(2))
    shared = flat.T @ flat
    sums = flat.sum(0)
    with np.errstate(invalid="ignore"):
        expected = np.nan_to_num(shared / (sums[:, None] + sums - shared))
    crowd = [0] * len(rles)
    assert np.array_equal(mask.iou(rles, rles, crowd), expected)


def test_iou_accepts_boxes_and_empty_lists() -> None:
    boxes = [[0.0, 0, 10, 10], [5, 0, 10, 10]]
    assert mask.iou(boxes, np.array(boxes), [0, 1]).tolist() == [[1, 0.5], [1 / 3, 1]]
    assert mask.iou([], boxes, [0, 0]) == [] and mask.iou(boxes, [], []) == []


GOOD = {"size": [2, 2], "counts": b"04"}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: mask.encode(np.zeros((2, 2), np.float32)), ValueError, "float32"),
        (lambda: mask.encode(np.zeros(2, np.uint8)), ValueError, r"\(2,\)"),
        (lambda: mask.encode([[1]]), TypeError, "bimask"),
        (lambda: mask.decode([GOOD, {"size": [2, 2], "counts": b"1"}]), ValueError, r"\[1\]"),
        (lambda: mask.decode([GOOD, {"size": [1, 2], "counts": b"02"}]), ValueError, "1 x 2"),
        (lambda: mask.decode({"size": [2, 2], "counts": [4]}), TypeError, "counts"),
        (lambda: mask.decode({"size": [2, 2]}), KeyError, "counts"),
        (lambda: mask.decode({"size": [2], "counts": b"04"}), ValueError, "size"),
        (lambda: mask.decode({"size": [2, -2], "counts": b"04"}), ValueError, "size"),
        (lambda: mask.decode({"size": [2**31, 2**31], "counts": b"04"}), ValueError, "size"),
        (lambda: mask.area([GOOD, 3]), TypeError, r"\[1\]"),
        (lambda: mask.area({"size": [2, 2], "counts": b"\xff"}), ValueError, "byte 0"),
        (lambda: mask.merge([GOOD, {"size": [1, 2], "counts": b"02"}]), ValueError, "1 x 2"),
        (lambda: mask.iou([GOOD], [GOOD], []), AssertionError, "length"),
        (lambda: mask.iou([GOOD], [[0, 0, 1, 1]], [0]), TypeError, "same data type"),
        (lambda: mask.iou(np.zeros((1, 3)), [GOOD], [0]), ValueError, "dt"),
        (lambda: mask.frPyObjects([[0, 0, 1, 1, 2]], 4, 4), ValueError, r"poly\[0\]"),
        (lambda: mask.frPyObjects([[0, 0, 1, 1, 2, float("nan")]], 4, 4), ValueError, "NaN"),
        (lambda: mask.frPyObjects([[0, 0, 1, float("inf")]], 4, 4), ValueError, "finite"),
        (lambda: mask.frPyObjects({"size": [2, 2], "counts": [5]}, 2, 2), ValueError, "add up"),
        (lambda: mask.frPyObjects(3, 2, 2), TypeError, "int"),
    ],
)
def test_reports_invalid_input(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
