"""The class COCOeval: pycocotools' evaluation of boxes, masks and keypoints."""

from __future__ import annotations

import copy
import datetime
import time
from collections import defaultdict
from typing import Any

import numpy as np

from .. import _coco
from ._accumulate import accumulate
from ._cells import compute_iou, compute_oks, evaluate_cell
from ._details import Details
from ._native import NativeRun
from ._summary import detection_stats, keypoint_stats
from ._types import Record
from .coco import COCO
from .params import Params

__all__ = ["COCOeval", "Params"]

# Methods that a subclass may override; then all images are evaluated by calling them.
_STEPS = ("_prepare", "computeIoU", "computeOks", "evaluateImg")


def _copy_of(params: Any) -> Any:
    """Returns a deep copy, except that the elements of long id lists, which are immutable, are
    shared."""
    made = copy.copy(params)
    for name, value in vars(params).items():
        is_ids = name in ("imgIds", "catIds") and isinstance(value, list)
        setattr(made, name, list(value) if is_ids else copy.deepcopy(value))
    return made


class COCOeval:
    """Evaluates detections against a data set, with pycocotools' attributes and methods.

    params: what to evaluate, writable in place. evaluate() matches detections with objects,
    accumulate() computes the tables `eval`: precision and scores (T, R, K, A, M) and recall
    (T, K, A, M), -1 without objects. summarize() prints and sets `stats`. evalImgs: matches by
    category, area range and image; ious: overlaps (D, G) by image and category; both are computed
    on access. evalImgs may be set, for example to merged results of several processes; accumulate()
    then uses it. Not thread-safe.
    """

    params: Any
    eval: Record
    stats: Any

    def __init__(self, cocoGt: Any = None, cocoDt: Any = None, iouType: str = "segm") -> None:
        """iouType: 'segm', 'bbox' or 'keypoints'; otherwise raises Exception."""
        if not iouType:
            print("iouType not specified. use default iouType segm")
        self.cocoGt = cocoGt
        self.cocoDt = cocoDt
        self.params = Params(iouType=iouType)
        self.eval = {}
        self.stats = []
        self._paramsEval: Any = {}
        self._run: NativeRun | None = None
        self._seen: Details | None = None
        self._held: dict[str, Any] = {}  # evalImgs, ious, _gts, _dts after they were created or set
        self._forget()
        if cocoGt is not None:
            if isinstance(cocoGt, COCO):
                self.params.imgIds, self.params.catIds = cocoGt.sorted_ids()
            else:
                self.params.imgIds = sorted(cocoGt.getImgIds())
                self.params.catIds = sorted(cocoGt.getCatIds())

    def _forget(self) -> None:
        self._run = self._seen = None
        self._held = {
            "evalImgs": defaultdict(list),
            "ious": {},
            "_gts": defaultdict(list),
            "_dts": defaultdict(list),
        }

    # ---- Attributes that are created on access ----

    def _details(self) -> Details:
        if self._seen is None:
            assert self._run is not None
            self._seen = Details(self._run.run, self._paramsEval)
        return self._seen

    @property
    def evalImgs(self) -> Any:
        """Matches by category, area range and image; None for an empty entry."""
        if "evalImgs" not in self._held:
            self._held["evalImgs"] = self._details().eval_imgs()
        return self._held["evalImgs"]

    @evalImgs.setter
    def evalImgs(self, value: Any) -> None:
        self._held["evalImgs"] = value
        self._run = None

    @property
    def ious(self) -> Any:
        """IoU or OKS (D, G) by image and category; detections by descending score."""
        if "ious" not in self._held:
            self._held["ious"] = self._details().ious()
        return self._held["ious"]

    @ious.setter
    def ious(self, value: Any) -> None:
        self._held["ious"] = value

    @property
    def _gts(self) -> Any:
        return self._annotations("_gts")

    @_gts.setter
    def _gts(self, value: Any) -> None:
        self._held["_gts"] = value

    @property
    def _dts(self) -> Any:
        return self._annotations("_dts")

    @_dts.setter
    def _dts(self, value: Any) -> None:
        self._held["_dts"] = value

    def _annotations(self, name: str) -> Any:
        if name not in self._held:
            self._group()
        return self._held[name]

    # ---- Steps for one image and category ----

    def _prepare(self) -> None:
        """Fills _gts and _dts and sets the objects' 'ignore', as pycocotools does."""
        self._group()
        self._held["evalImgs"] = defaultdict(list)
        self.eval = {}

    def _group(self) -> None:
        p = self.params
        filters: Record = {"imgIds": p.imgIds}
        if p.useCats:
            filters["catIds"] = p.catIds
        truth = self.cocoGt.loadAnns(self.cocoGt.getAnnIds(**filters))
        found = self.cocoDt.loadAnns(self.cocoDt.getAnnIds(**filters))
        if p.iouType == "segm":
            for coco, anns in ((self.cocoGt, truth), (self.cocoDt, found)):
                for ann in anns:
                    ann["segmentation"] = coco.annToRLE(ann)
        for ann in truth:
            ann["ignore"] = "iscrowd" in ann and ann["iscrowd"]
            if p.iouType == "keypoints":
                ann["ignore"] = ann["num_keypoints"] == 0 or ann["ignore"]
        for name, anns in (("_gts", truth), ("_dts", found)):
            groups = defaultdict(list)
            for ann in anns:
                groups[ann["image_id"], ann["category_id"]].append(ann)
            self._held[name] = groups

    def _cell(self, imgId: Any, catId: Any) -> tuple[list[Record], list[Record]]:
        gts, dts, p = self._gts, self._dts, self.params
        if p.useCats:
            return gts[imgId, catId], dts[imgId, catId]
        return (
            [one for cat in p.catIds for one in gts[imgId, cat]],
            [one for cat in p.catIds for one in dts[imgId, cat]],
        )

    def computeIoU(self, imgId: Any, catId: Any) -> Any:
        """Returns the IoU (D, G) for an image and category, detections by descending score; [] if
        empty."""
        return compute_iou(self.params, *self._cell(imgId, catId))

    def computeOks(self, imgId: Any, catId: Any) -> Any:
        """Returns the OKS (D, G) for an image and category, detections by descending score; [] if
        empty."""
        return compute_oks(self.params, *self._cell(imgId, catId))

    def evaluateImg(self, imgId: Any, catId: Any, aRng: Any, maxDet: int) -> Record | None:
        """Returns the entry of evalImgs for an image and category; None if empty."""
        gts, dts = self._cell(imgId, catId)
        if not gts and not dts:
            return None
        ious = self.ious[imgId, catId]
        return evaluate_cell(self.params, (imgId, catId), gts, dts, aRng, maxDet, ious)

    # ---- Evaluation of all images ----

    def _is_plain(self) -> bool:
        cls = type(self)
        if any(name in self.__dict__ for name in _STEPS):
            return False
        return all(getattr(cls, name) is getattr(COCOeval, name) for name in _STEPS)

    def evaluate(self) -> None:
        """Matches detections with objects by `params`; raises the same exceptions as
        `COCO.loadRes`."""
        start = time.time()
        print("Running per image evaluation...")
        p = self.params
        if p.useSegm is not None:
            p.iouType = "segm" if p.useSegm == 1 else "bbox"
            print(f"useSegm (deprecated) is not None. Running {p.iouType} evaluation")
        print(f"Evaluate annotation type *{p.iouType}*")
        p.imgIds = list(np.unique(p.imgIds))
        if p.useCats:
            p.catIds = list(np.unique(p.catIds))
        p.maxDets = sorted(p.maxDets)
        self.params = p
        self._forget()
        self.eval = {}
        try:
            if not self._is_plain():
                raise _coco.Unusual("a subclass has steps of its own")
            self._run = NativeRun.of(self.cocoGt, self.cocoDt, p)
            self._held.clear()
        except _coco.Unusual:
            self._evaluate_cells()
        self._paramsEval = _copy_of(p)
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def _evaluate_cells(self) -> None:
        p = self.params
        self._prepare()
        cat_ids = p.catIds if p.useCats else [-1]
        compute = self.computeOks if p.iouType == "keypoints" else self.computeIoU
        self.ious = {(img, cat): compute(img, cat) for img in p.imgIds for cat in cat_ids}
        limit = p.maxDets[-1]
        self.evalImgs = [
            self.evaluateImg(img, cat, area, limit)
            for cat in cat_ids
            for area in p.areaRng
            for img in p.imgIds
        ]

    def accumulate(self, p: Any = None) -> None:
        """Computes `eval` for the parameters `p`, default `params`; -1 for values not evaluated."""
        print("Accumulating evaluation results...")
        start = time.time()
        if p is None:
            p = self.params
        if self._run is None and not len(self.evalImgs):
            print("Please run evaluate() first")
        p.catIds = p.catIds if p.useCats == 1 else [-1]
        if self._run is not None:
            made = self._tables(p)
        else:
            made = accumulate(self.evalImgs, p, self._paramsEval)
        cats = len(p.catIds) if p.useCats else 1
        self.eval = {
            "params": p,
            "counts": [len(p.iouThrs), len(p.recThrs), cats, len(p.areaRng), len(p.maxDets)],
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": made["precision"],
            "recall": made["recall"],
            "scores": made["scores"],
        }
        print(f"DONE (t={time.time() - start:0.2f}s).")

    def _tables(self, p: Any) -> Record:
        run, made_with = self._run, self._paramsEval
        assert run is not None
        same = (
            np.array_equal(p.iouThrs, made_with.iouThrs)
            and np.array_equal(p.recThrs, run.rec_thrs)
            and [tuple(one) for one in p.areaRng] == [tuple(one) for one in made_with.areaRng]
            and list(p.maxDets) == list(made_with.maxDets)
            and bool(p.useCats) == bool(made_with.useCats)
            and (not p.useCats or list(p.catIds) == list(made_with.catIds))
            and list(p.imgIds) == list(made_with.imgIds)
        )
        if not same:
            return run.tables_for(p, made_with)
        return {name: run.tables[name] for name in ("precision", "recall", "scores")}

    def summarize(self) -> None:
        """Prints the metrics and sets `stats`: 12 for boxes and masks, 10 for keypoints.

        A metric without objects is -1. Raises Exception before accumulate().
        """
        if not self.eval:
            raise Exception("Please run accumulate() first")
        figures = keypoint_stats if self.params.iouType == "keypoints" else detection_stats
        self.stats, lines = figures(self.params, self.eval)
        print("\n".join(lines))

    def __str__(self) -> str:
        if not self.eval:
            return super().__str__()
        figures = keypoint_stats if self.params.iouType == "keypoints" else detection_stats
        return "\n".join(figures(self.params, self.eval)[1])
