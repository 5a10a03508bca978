"""COCO data sets, masks and evaluation in C++."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_Bytes = npt.NDArray[np.uint8]
_Ids = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Dict = dict[str, Any]

class Unusual(ValueError):
    """Input that pycocotools accepts and flat arrays cannot hold."""

def encode(bitmaps: _Bytes) -> list[_Dict]: ...
def decode(masks: Any) -> _Bytes: ...
def area(masks: Any) -> npt.NDArray[np.uint32]: ...
def to_bbox(masks: Any) -> _Floats: ...
def merge(masks: Any, intersect: bool) -> _Dict: ...
def mask_iou(dt: Any, gt: Any, iscrowd: _Bytes) -> _Floats: ...
def box_iou(dt: _Floats, gt: _Floats, iscrowd: _Bytes) -> _Floats: ...
def from_boxes(boxes: _Floats, height: int, width: int) -> list[_Dict]: ...
def from_polygons(polygons: Any, height: int, width: int) -> list[_Dict]: ...
def from_uncompressed(masks: Any) -> list[_Dict]: ...

class Truth:
    """The ground truth of an evaluation. Immutable."""

    @property
    def image_ids(self) -> _Ids: ...
    @property
    def category_ids(self) -> _Ids: ...
    @property
    def has_id_zero(self) -> bool: ...
    def __len__(self) -> int: ...

class Found:
    """Detections to evaluate. Immutable."""

    @property
    def image_ids(self) -> _Ids: ...
    @property
    def areas(self) -> str: ...
    def __len__(self) -> int: ...

def truth_of_index(
    img_to_anns: dict[Any, Any],
    anns: dict[Any, Any],
    imgs: dict[Any, Any],
    image_ids: _Ids,
    category_ids: _Ids,
    iou_type: str,
    federated: bool = ...,
) -> Truth: ...
def found_of_index(
    img_to_anns: dict[Any, Any],
    anns: dict[Any, Any],
    imgs: dict[Any, Any],
    image_ids: _Ids,
    iou_type: str,
) -> Found: ...
def found_of_list(
    results: list[Any],
    iou_type: str,
    areas: str,
    imgs: dict[Any, Any] | None,
    truth: Truth | None,
) -> Found: ...
def found_of_rows(rows: _Floats, single: bool) -> Found: ...
def are_of_images(
    results: list[Any], imgs: dict[Any, Any] | None, truth: Truth | None, required: str
) -> bool: ...
def read_truth(path: str) -> Truth: ...
def read_found(path: str, truth: Truth | None) -> Found: ...
def index(
    dataset: _Dict, of_image: dict[Any, Any], of_category: dict[Any, Any]
) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any], dict[Any, Any]]: ...

class Options:
    """The parameters of an evaluation. `areas`: the bounds of all area ranges, as one flat list."""

    def __init__(
        self,
        iou_type: str,
        iou_thrs: Sequence[float],
        rec_thrs: Sequence[float],
        areas: Sequence[float],
        area_names: Sequence[str],
        max_dets: Sequence[int],
        use_cats: bool,
        cat_ids: Sequence[int],
        sigmas: Sequence[float] = ...,
        federated: bool = ...,
    ) -> None: ...

class Run:
    """Detections and their ground truth."""

    def __init__(
        self, truth: Truth, found: Found, options: Options, image_ids: _Ids
    ) -> None: ...
    def evaluate(self) -> _Dict: ...
    def details(self, image_ids: _Ids) -> dict[str, npt.NDArray[Any]]: ...

def match_cell(
    overlaps: _Floats,
    thresholds: _Floats,
    dt_ids: _Floats,
    gt_ids: _Floats,
    ignored: _Bytes,
    crowd: _Bytes,
) -> tuple[_Floats, _Floats, _Bytes]: ...

class Evaluator:
    """Evaluates detections added per image. Thread-safe."""

    def __init__(self, truth: Truth, options: Options) -> None: ...
    def add(
        self, image_id: int, boxes: Any, scores: Any, labels: Any, masks: Any, corners: bool
    ) -> None: ...
    def __len__(self) -> int: ...
    def partial(self) -> bytes: ...
    def merge(self, partial: bytes) -> None: ...
    def result(self, all_images: bool) -> _Dict: ...
