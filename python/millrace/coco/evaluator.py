"""The class Evaluator: evaluates detections added per image, as arrays, from several threads."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import _coco
from ._types import Floats, Ids, Record
from .coco import COCO
from .params import Params


@dataclass(frozen=True)
class Evaluation:
    """The result of an Evaluator: tables as in COCOeval.eval, and metrics.

    precision, scores: (T, R, K, A, M), recall: (T, K, A, M), -1 without objects.
    stats: the 12 metrics that COCOeval.summarize prints. category_ap: (K) AP of each category of
    category_ids. unknown_categories: number of detections whose label is not a category.
    """

    stats: Floats
    precision: Floats
    recall: Floats
    scores: Floats
    category_ids: Ids
    category_ap: Floats
    unknown_categories: int


def _truth_of(data: Any, iou_type: str) -> _coco.Truth:
    if isinstance(data, (str, os.PathLike)):
        os.stat(data)  # OSError if the file is not found
        return _coco.read_truth(os.fspath(data))
    if isinstance(data, dict):
        with contextlib.redirect_stdout(io.StringIO()):
            data = COCO(data)
    native: _coco.Truth | None = getattr(data, "native_truth", None)
    if native is not None:
        return native
    if not hasattr(data, "imgToAnns"):
        raise TypeError(f"data: expected a COCO, a path or a dict, not {type(data).__name__}")
    images = np.array(sorted(data.imgs), dtype=np.int64)
    categories = np.array(sorted(data.cats), dtype=np.int64)
    return _coco.truth_of_index(
        data.imgToAnns, data.anns, data.imgs, images, categories, iou_type
    )


class Evaluator:
    """Scores detections incrementally and keeps only their matches.

    The result is bit-identical to COCOeval on all detections at once, for any order of images,
    number of threads and split over evaluators that are merged. The area of a detection is that of
    its box with 'bbox' and of its mask with 'segm', as for results without boxes. Any thread may
    call any method; the matching runs in the calling thread without the GIL.
    """

    def __init__(
        self,
        data: COCO | str | os.PathLike[str] | Record,
        iou_type: Literal["bbox", "segm"] = "bbox",
        *,
        params: Params | None = None,
    ) -> None:
        """data: a COCO, an annotation file or its dict. params: its thresholds, area ranges, limits
        and useCats are used; default: COCO's. Raises ValueError if they are not supported.
        """
        if iou_type not in ("bbox", "segm"):
            raise ValueError(f"iou_type is {iou_type!r}; expected 'bbox' or 'segm'")
        p = params or Params(iou_type)
        self._truth = _truth_of(data, iou_type)
        options = _coco.Options(
            iou_type=iou_type,
            iou_thrs=[float(t) for t in p.iouThrs],
            rec_thrs=[float(r) for r in p.recThrs],
            areas=[float(end) for one in p.areaRng for end in one],
            area_names=[str(name) for name in p.areaRngLbl],
            max_dets=sorted(int(m) for m in p.maxDets),
            use_cats=bool(p.useCats),
            cat_ids=[int(c) for c in p.catIds],
        )
        self._core = _coco.Evaluator(self._truth, options)

    def __len__(self) -> int:
        """Returns the number of images that were added or merged."""
        return len(self._core)

    def add(
        self,
        image_id: int,
        boxes: Any,
        scores: Any,
        labels: Any,
        masks: Any = None,
        *,
        box_format: Literal["xywh", "xyxy"] = "xywh",
    ) -> None:
        """Adds all detections of an image, in any order.

        boxes: (D, 4) pixels, or None with masks. scores: (D). labels: (D) category ids. masks:
        (D, H, W) of bool or uint8 of the image's size, or D RLEs. Arrays of NumPy, of torch on the
        CPU, or of anything else with DLPack; float32 and float64, any integers. Those of unknown
        categories are ignored and counted. Raises ValueError or TypeError naming the image and
        the argument: invalid shapes or types, NaN, an image that is unknown or already added.
        """
        if box_format not in ("xywh", "xyxy"):
            raise ValueError(f"box_format is {box_format!r}; expected 'xywh' or 'xyxy'")
        given = (_array(boxes), _array(scores), _array(labels, np.int64))
        if isinstance(masks, np.ndarray) and masks.dtype == np.bool_:
            masks = masks.view(np.uint8)
        self._core.add(image_id, *given, masks, box_format == "xyxy")

    def partial(self) -> bytes:
        """Returns the state, for `merge` in another process. Equal states have equal bytes."""
        return self._core.partial()

    def merge(self, partial: bytes) -> None:
        """Adds the state of an evaluator with the same data set and parameters.

        Raises ValueError, and changes nothing, if they differ, the state is damaged, or an image
        was already added.
        """
        self._core.merge(partial)

    def result(self, *, all_images: bool = False) -> Evaluation:
        """Returns the metrics over the added images, or with `all_images` over all images, where
        the others have no detections."""
        made = self._core.result(all_images)
        return Evaluation(
            made["stats"],
            made["precision"],
            made["recall"],
            made["scores"],
            made["category_ids"],
            made["category_ap"],
            made["unknown_categories"],
        )


def _array(values: Any, empty: Any = np.float64) -> Any:
    """Converts lists to arrays, empty lists to arrays of type `empty`; arrays are returned
    unchanged."""
    if not isinstance(values, (list, tuple)):
        return values
    return np.asarray(values) if len(values) > 0 else np.zeros(0, empty)
