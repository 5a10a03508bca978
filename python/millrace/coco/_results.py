"""The input of loadRes, kept unchanged until its dicts are accessed."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from .. import _coco
from . import mask
from ._json_file import JsonFile
from ._types import Floats, Record

Rule = Literal["caption", "bbox", "segm", "keypoints", "none"]


def rule_of(results: list[Record]) -> Rule:
    """Returns the source of all areas, which the first result determines."""
    first = results[0]
    if not isinstance(first, dict):
        raise TypeError("detections[0]: not a dict")
    if "caption" in first:
        return "caption"
    if "bbox" in first and len(first["bbox"]) > 0:
        return "bbox"
    if "segmentation" in first:
        return "segm"
    return "keypoints" if "keypoints" in first else "none"


def complete(results: list[Record], rule: Rule) -> None:
    """Adds the fields that pycocotools' loadRes adds, in place: id, area, bbox, segmentation."""
    for number, one in enumerate(results, 1):
        one["id"] = number
        if rule == "bbox":
            x, y, width, height = one["bbox"][:4]
            right, bottom = x + width, y + height
            if "segmentation" not in one:
                one["segmentation"] = [[x, y, x, bottom, right, bottom, right, y]]
            one["area"] = width * height
            one["iscrowd"] = 0
        elif rule == "segm":
            one["area"] = mask.area(one["segmentation"])
            if "bbox" not in one:
                one["bbox"] = mask.toBbox(one["segmentation"])
            one["iscrowd"] = 0
        elif rule == "keypoints":
            x, y = one["keypoints"][0::3], one["keypoints"][1::3]
            left, right, top, bottom = np.min(x), np.max(x), np.min(y), np.max(y)
            one["area"] = (right - left) * (bottom - top)
            one["bbox"] = [left, top, right - left, bottom - top]


def best_of_images(results: list[Record], limit: int) -> list[Record]:
    """Returns at most `limit` results per image, grouped by image in order of first occurrence."""
    by_image: dict[Any, list[Record]] = {}
    for one in results:
        by_image.setdefault(one["image_id"], []).append(one)
    kept: list[Record] = []
    for found in by_image.values():
        if len(found) > limit:
            found = sorted(found, key=lambda one: cast(float, one["score"]), reverse=True)[:limit]
        kept += found
    return kept


def rows_as_dicts(rows: Any) -> list[Record]:
    """Converts detections in an array (N, 7): image, x, y, width, height, score, category."""
    return [
        {
            "image_id": int(row[0]),
            "bbox": [row[1], row[2], row[3], row[4]],
            "score": row[5],
            "category_id": int(row[6]),
        }
        for row in rows
    ]


@dataclass
class Results:
    """Results in one of three forms, and their data set."""

    images_of: Any  # the COCO that loadRes was called on
    rule: Rule
    dicts: list[Record] | None = None
    rows: Any = None  # (N, 7), float
    file: JsonFile | None = None
    found: _coco.Found | None = None  # of the file
    limit: int = -1  # LVIS: maximum number of detections per image; negative = all

    def annotations(self) -> list[Record]:
        """Returns the results as completed dicts."""
        if self.dicts is None:
            self.dicts = self.file.load() if self.file else rows_as_dicts(self.rows)
            if self.limit >= 0:
                self.dicts = best_of_images(self.dicts, self.limit)
        complete(self.dicts, self.rule)
        return self.dicts

    def dataset(self) -> Record:
        """Returns the results as a data set, as pycocotools does."""
        base = self.images_of.dataset
        annotations = self.annotations()
        images = list(base["images"])
        made: Record = {"info": copy.deepcopy(base.get("info", {})), "images": images}
        if self.rule == "caption":
            named = {one["image_id"] for one in annotations}
            made["images"] = [image for image in images if image["id"] in named]
        elif self.rule != "none":
            made["categories"] = copy.deepcopy(base["categories"])
        made["annotations"] = annotations
        return made

    def found_for(self, iou_type: str) -> _coco.Found:
        """Returns the input of the evaluator. Raises the exceptions of `_coco`, including
        Unusual."""
        if self.found is not None:
            return self.found
        if self.rows is not None:
            return _coco.found_of_rows(_as_double(self.rows), self.rows.dtype == np.float32)
        if self.rule not in ("bbox", "segm", "keypoints") or self.dicts is None:
            raise _coco.Unusual("results of another kind")
        native = self.images_of.native_truth
        images = None if native else self.images_of.imgs
        return _coco.found_of_list(self.dicts, iou_type, self.rule, images, native)


def _as_double(rows: Any) -> Floats:
    return np.ascontiguousarray(rows, dtype=np.float64)
