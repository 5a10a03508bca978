"""COCOeval's fast path: the C++ evaluator, on arrays made from dicts or files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import _coco
from ._types import Ids, Record


def _is_index(coco: Any) -> bool:
    """Returns whether annotations can be read directly from the dicts: no method is overridden."""
    cls = type(coco)
    for name in ("getAnnIds", "loadAnns", "annToRLE"):
        method = getattr(cls, name, None)
        home = getattr(method, "__module__", "")
        if method is None or not home.endswith((".coco", "faster_eval_api", "pycocotools")):
            return False
        if name in coco.__dict__:
            return False
    dicts = ("imgToAnns", "anns", "imgs")
    return all(isinstance(getattr(coco, name, None), dict) for name in dicts)


def _integers(values: Any, name: str) -> list[int]:
    whole = []
    for value in values:
        if isinstance(value, (float, np.floating)) and value != int(value):
            raise _coco.Unusual(f"{name} holds {value}")
        try:
            whole.append(int(value))
        except (TypeError, ValueError) as problem:
            raise _coco.Unusual(f"{name} holds {value!r}") from problem
    return whole


def id_array(values: Any, name: str) -> Ids:
    """Returns the values as an integer array; raises Unusual if there are none or they are not
    integers."""
    ids = np.asarray(values)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(ids) == 0:
        raise _coco.Unusual(f"{name} are not whole numbers")
    return ids.astype(np.int64)


def _truth_of(coco: Any, p: Any, images: Ids, categories: Ids) -> _coco.Truth:
    native: _coco.Truth | None = getattr(coco, "native_truth", None)
    if native is not None:
        return native
    if not _is_index(coco):
        raise _coco.Unusual("cocoGt is a class of its own")
    return _coco.truth_of_index(
        coco.imgToAnns, coco.anns, coco.imgs, images, categories, p.iouType
    )


def _found_of(coco: Any, p: Any, images: Ids) -> _coco.Found:
    results = getattr(coco, "native_results", None)
    if results is not None and results.rule in ("bbox", "segm", "keypoints"):
        found: _coco.Found = results.found_for(p.iouType)
        return found
    if not _is_index(coco):
        raise _coco.Unusual("cocoDt is a class of its own")
    return _coco.found_of_index(coco.imgToAnns, coco.anns, coco.imgs, images, p.iouType)


def options_of(
    p: Any, cat_ids: list[int], rec_thrs: Any, *, federated: bool = False
) -> _coco.Options:
    """Returns the parameters for C++; raises Unusual if they are not supported."""
    areas = [float(end) for one in p.areaRng for end in one]
    limits = _integers(p.maxDets, "maxDets")
    if not limits or min(limits) < 1 or any(len(one) != 2 for one in p.areaRng) or not areas:
        raise _coco.Unusual("maxDets or areaRng")
    if len(p.iouThrs) == 0 or len(rec_thrs) == 0:
        raise _coco.Unusual("no thresholds")
    return _coco.Options(
        iou_type=p.iouType,
        iou_thrs=[float(t) for t in p.iouThrs],
        rec_thrs=[float(r) for r in rec_thrs],
        areas=areas,
        area_names=[str(name) for name in p.areaRngLbl],
        max_dets=limits,
        use_cats=bool(p.useCats),
        cat_ids=cat_ids,
        sigmas=[float(s) for s in getattr(p, "kpt_oks_sigmas", [])],
        federated=federated,
    )


@dataclass
class NativeRun:
    """An evaluation, kept to compute the details on access."""

    truth: _coco.Truth
    found: _coco.Found
    run: _coco.Run
    tables: Record
    rec_thrs: list[float]

    @classmethod
    def of(cls, gt: Any, dt: Any, p: Any) -> NativeRun:
        """Evaluates; raises Unusual for input that only Python dicts can represent."""
        if p.iouType not in ("bbox", "segm", "keypoints"):
            raise _coco.Unusual("an unknown iouType")
        images = id_array(p.imgIds, "imgIds")
        categories = id_array(p.catIds, "catIds")
        if len(np.unique(categories)) != len(categories):
            raise _coco.Unusual("catIds repeat themselves")
        if not p.useCats and not (np.diff(categories) > 0).all():
            raise _coco.Unusual("catIds are in an order of their own")
        truth = _truth_of(gt, p, images, categories)
        found = _found_of(dt, p, images)
        options = options_of(p, categories.tolist(), p.recThrs)
        run = _coco.Run(truth, found, options, images)
        return cls(truth, found, run, run.evaluate(), [float(r) for r in p.recThrs])

    def tables_for(self, p: Any, made_with: Any) -> Record:
        """Returns the tables for other parameters: -1 for values that were not evaluated."""
        cat_ids = list(p.catIds) if p.useCats else [-1]
        known = set(made_with.catIds) if made_with.useCats else {-1}
        ks = [n for n, one in enumerate(cat_ids) if one in known]
        known_areas = {tuple(one) for one in made_with.areaRng}
        areas = [n for n, one in enumerate(p.areaRng) if tuple(one) in known_areas]
        limits = [n for n, one in enumerate(p.maxDets) if one in set(made_with.maxDets)]
        known_images = set(made_with.imgIds)
        images = np.unique([one for one in p.imgIds if one in known_images])
        sizes = len(p.iouThrs), len(p.recThrs), len(cat_ids), len(p.areaRng), len(p.maxDets)
        out = {
            "precision": -np.ones(sizes),
            "recall": -np.ones((sizes[0], *sizes[2:])),
            "scores": -np.ones(sizes),
        }
        if not ks or not areas or not limits or len(images) == 0:
            return out
        part = _Part(p, [p.areaRng[n] for n in areas], [p.maxDets[n] for n in limits])
        wanted = [int(cat_ids[n]) for n in ks] if p.useCats else [int(c) for c in made_with.catIds]
        run = _coco.Run(
            self.truth, self.found, options_of(part, wanted, p.recThrs), images.astype(np.int64)
        )
        made = run.evaluate()
        order = np.argsort(np.argsort(part.maxDets, kind="stable"), kind="stable")
        rows, columns, pages = np.ix_(ks, areas, limits)
        for name, table in out.items():
            table[..., rows, columns, pages] = made[name][..., order]
        return out


class _Part:
    """Copies parameters with different area ranges and limits."""

    def __init__(self, p: Any, areas: list[Any], limits: list[Any]) -> None:
        self.iouType, self.iouThrs, self.useCats = p.iouType, p.iouThrs, p.useCats
        self.areaRng, self.areaRngLbl, self.maxDets = areas, [""] * len(areas), limits
        self.kpt_oks_sigmas = getattr(p, "kpt_oks_sigmas", [])
