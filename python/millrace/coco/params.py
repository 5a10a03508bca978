"""The parameters of an evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Floats

# For each keypoint of a person, in COCO's order: the annotators' standard deviation, relative to
# object size.
PERSON_SIGMAS = [
    0.026, 0.025, 0.025, 0.035, 0.035, 0.079, 0.079, 0.072, 0.072,
    0.062, 0.062, 0.107, 0.107, 0.087, 0.087, 0.089, 0.089,
]  # fmt: skip
_AREAS: dict[str, list[float]] = {
    "all": [0**2, 1e5**2],
    "small": [0**2, 32**2],
    "medium": [32**2, 96**2],
    "large": [96**2, 1e5**2],
}


class Params:
    """The parameters of a COCOeval, all writable in place.

    imgIds, catIds: ids to evaluate. iouThrs (T), recThrs (R): IoU and recall thresholds.
    maxDets (M): maximum detections per image and category. areaRng (A, 2): ranges of areas in
    pixels, both ends included; areaRngLbl: their names. useCats: 0 merges all categories.
    kpt_oks_sigmas: standard deviations of keypoints. useSegm: deprecated; 1 means iouType
    'segm', 0 'bbox'.
    """

    imgIds: Any
    catIds: Any
    iouThrs: Any
    recThrs: Any
    maxDets: Any
    areaRng: Any
    areaRngLbl: Any
    useCats: Any
    iouType: str
    useSegm: Any
    kpt_oks_sigmas: Any

    def __init__(self, iouType: str = "segm") -> None:
        """Raises Exception unless iouType is 'segm', 'bbox' or 'keypoints'."""
        if iouType in ("segm", "bbox"):
            self.setDetParams()
        elif iouType == "keypoints":
            self.setKpParams()
        else:
            raise Exception(f"iouType not supported: {iouType!r}")
        self.iouType = iouType
        self.useSegm = None

    def setDetParams(self) -> None:
        """Sets the defaults for boxes and masks."""
        self._set([1, 10, 100], ["all", "small", "medium", "large"])

    def setKpParams(self) -> None:
        """Sets the defaults for keypoints."""
        self._set([20], ["all", "medium", "large"])
        self.kpt_oks_sigmas = _sigmas()

    def _set(self, limits: list[int], areas: list[str]) -> None:
        self.imgIds = []
        self.catIds = []
        self.iouThrs = np.linspace(0.5, 0.95, 10)
        self.recThrs = np.linspace(0.0, 1.00, 101)
        self.maxDets = limits
        self.areaRng = [list(_AREAS[name]) for name in areas]
        self.areaRngLbl = areas
        self.useCats = 1


def _sigmas() -> Floats:
    return np.array([round(s * 10, 2) for s in PERSON_SIGMAS]) / 10.0
