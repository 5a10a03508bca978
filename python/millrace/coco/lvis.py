"""LVIS: federated data sets, with lvis-api's names, arguments and attributes."""

from __future__ import annotations

import contextlib
import datetime
import io
import logging
import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from .. import _coco
from ._details import Details
from ._native import id_array, options_of
from ._results import best_of_images, complete, rule_of
from ._types import RLE, Bitmaps, Record
from .coco import COCO

_NO_LIMIT = 2**31 - 1  # detections per image


def _silent(make: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return make()


class LVIS:
    """An LVIS data set. dataset: the file as dicts; anns, imgs, cats: records by id; img_ann_map:
    annotations by image id; cat_img_map: image ids by category id. A file is read in C++, and these
    dicts are created when one is first accessed."""

    def __init__(self, annotation_path: str | os.PathLike[str]) -> None:
        """Raises the same exceptions as COCO."""
        self.logger = logging.getLogger(__name__)
        self.logger.info("Loading annotations.")
        self._core: COCO = _silent(lambda: COCO(annotation_path))

    @property
    def core(self) -> COCO:
        """Returns the data set as a COCO."""
        return self._core

    @property
    def dataset(self) -> Record:
        return self._core.dataset

    @property
    def anns(self) -> dict[Any, Record]:
        return self._core.anns

    @property
    def imgs(self) -> dict[Any, Record]:
        return self._core.imgs

    @property
    def cats(self) -> dict[Any, Record]:
        return self._core.cats

    @property
    def img_ann_map(self) -> dict[Any, list[Record]]:
        return self._core.imgToAnns

    @property
    def cat_img_map(self) -> dict[Any, list[Any]]:
        return self._core.catToImgs

    def get_ann_ids(self, img_ids: Any = None, cat_ids: Any = None, area_rng: Any = None) -> Any:
        """Returns the ids of the annotations of these images and categories whose areas are within
        area_rng, both ends exclusive; None = all."""
        if img_ids is None:
            anns = self.dataset["annotations"]
        else:
            anns = [ann for img in img_ids for ann in self.img_ann_map.get(img, [])]
        if cat_ids is not None:
            wanted = set(cat_ids)
            anns = [ann for ann in anns if ann["category_id"] in wanted]
        if cat_ids is not None or area_rng is not None:
            low, high = area_rng if area_rng is not None else (0, float("inf"))
            anns = [ann for ann in anns if low < ann["area"] < high]
        return [ann["id"] for ann in anns]

    def get_cat_ids(self) -> list[Any]:
        """Returns the ids of all categories."""
        return list(self.cats)

    def get_img_ids(self) -> list[Any]:
        """Returns the ids of all images."""
        return list(self.imgs)

    @staticmethod
    def _load(records: dict[Any, Record], ids: Any) -> list[Record]:
        return list(records.values()) if ids is None else [records[one] for one in ids]

    def load_anns(self, ids: Any = None) -> list[Record]:
        """Returns the annotations with these ids; None = all. Raises KeyError."""
        return self._load(self.anns, ids)

    def load_cats(self, ids: Any) -> list[Record]:
        """Returns the categories with these ids; None = all. Raises KeyError."""
        return self._load(self.cats, ids)

    def load_imgs(self, ids: Any) -> list[Record]:
        """Returns the images with these ids; None = all. Raises KeyError."""
        return self._load(self.imgs, ids)

    def download(self, save_dir: str, img_ids: Any = None) -> None:
        """Downloads the images that are missing in a folder, from their 'coco_url'."""
        from urllib.request import urlretrieve  # imported late, since it is slow

        os.makedirs(save_dir, exist_ok=True)
        for image in self.load_imgs(img_ids):
            path = os.path.join(save_dir, image["coco_url"].split("/")[-1])
            if not os.path.exists(path):
                urlretrieve(image["coco_url"], path)

    def ann_to_rle(self, ann: Record) -> RLE:
        """Returns an annotation's 'segmentation' as an RLE with compressed counts."""
        return self._core.annToRLE(ann)

    def ann_to_mask(self, ann: Record) -> Bitmaps:
        """Returns an annotation's 'segmentation' as a bitmap (H, W) of 0 and 1."""
        return self._core.annToMask(ann)


class LVISResults(LVIS):
    """Detections for an LVIS data set, with the attributes of LVIS."""

    def __init__(self, lvis_gt: Any, results: Any, max_dets: int = 300) -> None:
        """results: a list of dicts, to which 'id', 'area' and other missing fields are added, or
        the path of a file. max_dets: maximum number of detections per image, the best ones are
        kept; negative = unlimited. Raises TypeError for an invalid lvis_gt, AssertionError for an
        image that it does not contain.
        """
        self.logger = logging.getLogger(__name__)
        self.logger.info("Loading and preparing results.")
        if isinstance(lvis_gt, (str, os.PathLike)):
            lvis_gt = LVIS(lvis_gt)
        if not isinstance(lvis_gt, LVIS):
            raise TypeError(f"Unsupported type {type(lvis_gt)} of lvis_gt.")
        self.max_dets = max_dets
        truth = lvis_gt.core
        if not isinstance(results, (str, os.PathLike)):
            assert isinstance(results, list), "results is not a list."
            if max_dets >= 0:
                results = best_of_images(results, max_dets)
            rule = rule_of(results) if results else "none"
            if rule in ("bbox", "segm"):
                complete(results, rule)
        try:
            self._core = _silent(lambda: truth.loadRes(results))
        except AssertionError as problem:
            raise AssertionError("Results do not correspond to current LVIS set.") from problem
        if self._core.native_results is not None:
            self._core.native_results.limit = max_dets

    def get_top_results(self, img_id: Any, score_thrs: float) -> list[Record]:
        """Returns an image's detections with scores above `score_thrs`."""
        return [one for one in self.img_ann_map.get(img_id, []) if one["score"] > score_thrs]


class Params:
    """The parameters of an LVISEval, all writable in place: see millrace.coco.Params."""

    def __init__(self, iou_type: str) -> None:
        self.img_ids: Any = []
        self.cat_ids: Any = []
        self.iou_thrs: Any = np.linspace(0.5, 0.95, 10)
        self.rec_thrs: Any = np.linspace(0.0, 1.00, 101)
        self.max_dets = 300
        self.area_rng: Any = [
            [0**2, 1e5**2],
            [0**2, 32**2],
            [32**2, 96**2],
            [96**2, 1e5**2],
        ]
        self.area_rng_lbl: Any = ["all", "small", "medium", "large"]
        self.use_cats: Any = 1
        self.img_count_lbl: Any = ["r", "c", "f"]  # rare, common, frequent
        self.iou_type = iou_type


class _AsCoco:
    """The parameters under COCO's names."""

    def __init__(self, p: Params, limit: int) -> None:
        self.iouType, self.useCats = p.iou_type, p.use_cats
        self.imgIds, self.catIds = p.img_ids, p.cat_ids
        self.iouThrs, self.recThrs = p.iou_thrs, p.rec_thrs
        self.areaRng, self.areaRngLbl = p.area_rng, p.area_rng_lbl
        self.maxDets = [limit]


class _Pointers(Mapping[int, Any]):
    """eval['dt_pointers']: for each category and area range, the detections by descending score,
    and flags of the correct and the wrong ones (T, D). Computed on access."""

    def __init__(self, entries: Any, sizes: tuple[int, int, int]) -> None:
        self._entries, self._sizes = entries, sizes

    def __len__(self) -> int:
        return self._sizes[0]

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._sizes[0]))

    def __getitem__(self, category: int) -> dict[int, Any]:
        if category not in range(self._sizes[0]):
            raise KeyError(category)
        return {area: self._cell(category, area) for area in range(self._sizes[1])}

    def _cell(self, category: int, area: int) -> dict[str, Any]:
        images = self._sizes[2]
        first = (category * self._sizes[1] + area) * images
        cells = [one for one in self._entries()[first : first + images] if one is not None]
        if not cells or all(np.all(one["gt_ignore"]) for one in cells):
            return {}
        scores = np.concatenate([one["dt_scores"] for one in cells])
        order = np.argsort(-scores, kind="mergesort")

        def joined(name: str) -> Any:
            return np.concatenate([one[name] for one in cells], axis=1)[:, order].astype(bool)

        matched, counted = joined("dt_matches"), ~joined("dt_ignore")
        return {
            "dt_ids": np.concatenate([one["dt_ids"] for one in cells])[order],
            "tps": matched & counted,
            "fps": ~matched & counted,
        }


_NAMES = {
    "image_id": "image_id",
    "category_id": "category_id",
    "aRng": "area_rng",
    "dtIds": "dt_ids",
    "gtIds": "gt_ids",
    "dtMatches": "dt_matches",
    "gtMatches": "gt_matches",
    "dtScores": "dt_scores",
    "gtIgnore": "gt_ignore",
    "dtIgnore": "dt_ignore",
}


class LVISEval:
    """Evaluates detections against an LVIS data set, with lvis-api's attributes and methods.

    params: what to evaluate. run() computes `eval`: precision (T, R, K, A) and recall (T, K, A), -1
    without objects, and `results`: metrics by name. eval_imgs and ious are computed on access. Not
    thread-safe.
    """

    def __init__(self, lvis_gt: Any, lvis_dt: Any, iou_type: str = "segm") -> None:
        """lvis_gt: an LVIS or a path. lvis_dt: LVISResults, a path or a list of dicts. iou_type:
        'segm' or 'bbox'. Raises ValueError or TypeError for anything else."""
        self.logger = logging.getLogger(__name__)
        if iou_type not in ("bbox", "segm"):
            raise ValueError(f"iou_type: {iou_type} is not supported.")
        if isinstance(lvis_gt, (str, os.PathLike)):
            lvis_gt = LVIS(lvis_gt)
        if not isinstance(lvis_gt, LVIS):
            raise TypeError(f"Unsupported type {type(lvis_gt)} of lvis_gt.")
        if isinstance(lvis_dt, (str, os.PathLike, list)):
            lvis_dt = LVISResults(lvis_gt, lvis_dt)
        if not isinstance(lvis_dt, LVISResults):
            raise TypeError(f"Unsupported type {type(lvis_dt)} of lvis_dt.")
        self.lvis_gt, self.lvis_dt = lvis_gt, lvis_dt
        self.params = Params(iou_type)
        self.params.img_ids, self.params.cat_ids = lvis_gt.core.sorted_ids()
        self.eval: Record = {}
        self.results: OrderedDict[str, Any] = OrderedDict()
        self.freq_groups: list[list[int]] = []
        self._run: _coco.Run | None = None
        self._run_with: Any = None
        self._tables: Record = {}
        self._with: Any = None
        self._seen: dict[str, Any] = {}

    @property
    def eval_imgs(self) -> Any:
        """Matches by category, area range and image; None for an empty entry."""
        if "eval_imgs" not in self._seen:
            self._seen["eval_imgs"] = [
                None if one is None else {new: one[old] for old, new in _NAMES.items()}
                for one in self._details().eval_imgs()
            ]
        return self._seen["eval_imgs"]

    @property
    def ious(self) -> Any:
        """IoU (D, G) by image and category; detections by descending score."""
        if "ious" not in self._seen:
            self._seen["ious"] = self._details().ious()
        return self._seen["ious"]

    def _details(self) -> Details:
        if self._run is None:
            raise RuntimeError("Please run evaluate() first.")
        results = self.lvis_dt.core.native_results
        if results is not None and results.file is not None:
            # lvis-api numbers detections image by image, but reading a file numbers them in file
            # order.
            self.lvis_dt.core.anns  # noqa: B018
            self._run = self._run_with(self._found())
        if "details" not in self._seen:
            self._seen["details"] = Details(self._run, self._with)
        return cast(Details, self._seen["details"])

    def _frequencies(self) -> list[list[int]]:
        groups: list[list[int]] = [[] for _ in self.params.img_count_lbl]
        for n, category in enumerate(self.lvis_gt.load_cats(self.params.cat_ids)):
            groups[self.params.img_count_lbl.index(category["frequency"])].append(n)
        return groups

    def evaluate(self) -> None:
        """Matches detections with objects. Raises KeyError or ValueError naming the location."""
        self.logger.info("Running per image evaluation.")
        self.logger.info(f"Evaluate annotation type *{self.params.iou_type}*")
        p = self.params
        p.img_ids = list(np.unique(p.img_ids))
        limit = self.lvis_dt.max_dets
        p_coco = _AsCoco(p, limit if limit > 0 else _NO_LIMIT)
        images, categories = id_array(p.img_ids, "img_ids"), id_array(p.cat_ids, "cat_ids")
        core = self.lvis_gt.core
        truth = core.native_truth
        if truth is None:
            truth = _coco.truth_of_index(
                core.imgToAnns,
                core.anns,
                core.imgs,
                images,
                np.unique(categories),
                p.iou_type,
                federated=True,
            )
        options = options_of(p_coco, categories.tolist(), p.rec_thrs, federated=True)
        self.freq_groups = self._frequencies()
        self._seen = {}
        self._with = p_coco
        self._run_with = lambda found: _coco.Run(truth, found, options, images)
        self._run = self._run_with(self._found())
        self._tables = self._run.evaluate()

    def _found(self) -> _coco.Found:
        found, p = self.lvis_dt.core, self.params
        results = found.native_results
        if results is not None and results.rule in ("bbox", "segm"):
            return results.found_for(p.iou_type)
        images = id_array(p.img_ids, "img_ids")
        return _coco.found_of_index(found.imgToAnns, found.anns, found.imgs, images, p.iou_type)

    def accumulate(self) -> None:
        """Computes `eval`."""
        self.logger.info("Accumulating evaluation results.")
        if self._run is None:
            raise RuntimeError("Please run evaluate() first.")
        precision, recall = self._tables["precision"][..., 0], self._tables["recall"][..., 0]
        sizes = precision.shape[2], precision.shape[3], len(self.params.img_ids)
        self.eval = {
            "params": self.params,
            "counts": list(precision.shape),
            "date": datetime.datetime.now().strftime("%Y-%m-%d %H:%M:%S"),
            "precision": precision,
            "recall": recall,
            "dt_pointers": _Pointers(lambda: self.eval_imgs, sizes),
        }

    def _summarize(
        self,
        summary_type: str,
        iou_thr: float | None = None,
        area_rng: str = "all",
        freq_group_idx: int | None = None,
    ) -> Any:
        areas = [n for n, name in enumerate(self.params.area_rng_lbl) if name == area_rng]
        table = self.eval["precision" if summary_type == "ap" else "recall"]
        if iou_thr is not None:
            table = table[np.where(iou_thr == np.asarray(self.params.iou_thrs))[0]]
        if summary_type == "ap" and freq_group_idx is not None:
            table = table[:, :, self.freq_groups[freq_group_idx], :]
        values = table[..., areas]
        values = values[values > -1]
        return -1 if len(values) == 0 else np.mean(values)

    def summarize(self) -> None:
        """Fills `results`. Raises RuntimeError before accumulate()."""
        if not self.eval:
            raise RuntimeError("Please run accumulate() first.")
        figures = self.results
        figures["AP"] = self._summarize("ap")
        figures["AP50"] = self._summarize("ap", iou_thr=0.50)
        figures["AP75"] = self._summarize("ap", iou_thr=0.75)
        for area in ("small", "medium", "large"):
            figures[f"AP{area[0]}"] = self._summarize("ap", area_rng=area)
        for n, name in enumerate("rcf"):
            figures[f"AP{name}"] = self._summarize("ap", freq_group_idx=n)
        limit = self.params.max_dets
        figures[f"AR@{limit}"] = self._summarize("ar")
        for area in ("small", "medium", "large"):
            figures[f"AR{area[0]}@{limit}"] = self._summarize("ar", area_rng=area)

    def run(self) -> None:
        """Calls evaluate(), accumulate() and summarize()."""
        self.evaluate()
        self.accumulate()
        self.summarize()

    def print_results(self) -> None:
        """Prints `results` as lvis-api does."""
        p = self.params
        for key, value in self.results.items():
            title, kind = (
                ("Average Precision", "(AP)") if "AP" in key else ("Average Recall", "(AR)")
            )
            mark = key[2:3]
            overlap = f"{p.iou_thrs[0]:0.2f}:{p.iou_thrs[-1]:0.2f}"
            if mark.isdigit():
                overlap = f"{float(key[2:]) / 100:0.2f}"
            group = mark if mark and mark in "rcf" else "all"
            area = mark if mark and mark in "sml" else "all"
            print(
                f" {title:<18} {kind} @[ IoU={overlap:<9} | area={area:>6s} | "
                f"maxDets={p.max_dets:>3d} catIds={group:>3s}] = {value:0.3f}"
            )

    def get_results(self) -> OrderedDict[str, Any]:
        """Returns the metrics by name; empty before run()."""
        if not self.results:
            self.logger.warning("results is empty. Call run().")
        return self.results
