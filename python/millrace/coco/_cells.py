"""Evaluates one image and category at a time, as pycocotools does, for unusual input."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _coco
from . import mask
from ._types import Floats, Record


def by_score(found: list[Record], limit: int) -> list[Record]:
    """Returns the best `limit` detections by descending score; ties keep their order."""
    order = np.argsort([-one["score"] for one in found], kind="mergesort")
    return [found[i] for i in order[:limit]]


def compute_iou(p: Any, truth: list[Record], found: list[Record]) -> Any:
    """Returns the IoU (D, G) of the best detections within the limit, by descending score; [] if
    there are no detections or no objects."""
    if not truth and not found:
        return []
    fields = {"segm": "segmentation", "bbox": "bbox"}
    if p.iouType not in fields:
        raise Exception(f"unknown iouType for iou computation: {p.iouType!r}")
    field = fields[p.iouType]
    crowd = [int(one.get("iscrowd", 0)) for one in truth]
    best = by_score(found, p.maxDets[-1])
    return mask.iou([one[field] for one in best], [one[field] for one in truth], crowd)


def compute_oks(p: Any, truth: list[Record], found: list[Record]) -> Any:
    """Returns the OKS (D, G) of the best detections within the limit, by descending score; [] if
    there are no detections or no objects."""
    found = by_score(found, p.maxDets[-1])
    if not truth or not found:
        return []
    variances = (np.asarray(p.kpt_oks_sigmas) * 2) ** 2
    points = np.array([one["keypoints"] for one in found])
    xd, yd = points[:, 0::3], points[:, 1::3]
    columns = [_oks_of(one, xd, yd, variances) for one in truth]
    return np.stack(columns, axis=1)


def _oks_of(one: Record, xd: Any, yd: Any, variances: Floats) -> Floats:
    """Returns the OKS (D) between an object and detected keypoints (D, K)."""
    points = np.array(one["keypoints"])
    xg, yg, visible = points[0::3], points[1::3], points[2::3]
    labelled = np.count_nonzero(visible > 0)
    if labelled > 0:
        dx, dy = xd - xg, yd - yg
    else:  # distance outside the box extended by its size on each side
        x, y, width, height = one["bbox"]
        left, right, top, bottom = x - width, x + width * 2, y - height, y + height * 2
        dx = np.maximum(0, left - xd) + np.maximum(0, xd - right)
        dy = np.maximum(0, top - yd) + np.maximum(0, yd - bottom)
    errors = (dx**2 + dy**2) / variances / (one["area"] + np.spacing(1)) / 2
    if labelled > 0:
        errors = errors[:, visible > 0]
    # Each row is summed separately, since numpy's rounding depends on the memory layout.
    return np.array([np.sum(np.exp(-row)) / row.shape[0] for row in errors])


def evaluate_cell(
    p: Any, ids: tuple[Any, Any], truth: list[Record], found: list[Record], a_rng: Any, limit: int,
    ious: Any,
) -> Record | None:  # fmt: skip
    """Returns the entry of evalImgs for an image and category (`ids`) in one area range."""
    if not truth and not found:
        return None
    for one in truth:
        outside = one["area"] < a_rng[0] or one["area"] > a_rng[1]
        one["_ignore"] = 1 if one["ignore"] or outside else 0
    order = np.argsort([one["_ignore"] for one in truth], kind="mergesort")
    truth = [truth[i] for i in order]
    found = by_score(found, limit)
    thresholds = np.ascontiguousarray(p.iouThrs, dtype=np.float64)
    ignored = np.array([one["_ignore"] for one in truth])
    shape = len(thresholds), len(found)
    if len(ious) > 0:
        # Rows beyond the limit belong to detections with lower scores; fewer rows are an error.
        overlaps = np.ascontiguousarray(np.asarray(ious)[: len(found), order], dtype=np.float64)
        dt_matches, gt_matches, dt_ignored = _coco.match_cell(
            overlaps,
            thresholds,
            np.array([one["id"] for one in found], dtype=np.float64),
            np.array([one["id"] for one in truth], dtype=np.float64),
            ignored.astype(np.uint8),
            np.array([int(one.get("iscrowd", 0)) != 0 for one in truth], dtype=np.uint8),
        )
    else:
        dt_matches, dt_ignored = np.zeros(shape), np.zeros(shape, np.uint8)
        gt_matches = np.zeros((len(thresholds), len(truth)))
    outside = np.array([one["area"] < a_rng[0] or one["area"] > a_rng[1] for one in found], bool)
    return {
        "image_id": ids[0],
        "category_id": ids[1],
        "aRng": a_rng,
        "maxDet": limit,
        "dtIds": [one["id"] for one in found],
        "gtIds": [one["id"] for one in truth],
        "dtMatches": dt_matches,
        "gtMatches": gt_matches,
        "dtScores": [one["score"] for one in found],
        "gtIgnore": ignored,
        "dtIgnore": (dt_ignored != 0) | ((dt_matches == 0) & outside.reshape(1, -1)),
    }
