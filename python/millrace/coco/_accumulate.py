"""Computes tables of precision and recall from evalImgs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._types import Floats, Record


def _tuples(ranges: Any) -> list[tuple[float, ...]]:
    return [tuple(one) for one in ranges]


def accumulate(eval_imgs: Sequence[Record | None], p: Any, made_with: Any) -> Record:
    """Returns precision, scores (T, R, K, A, M) and recall (T, K, A, M) for the parameters `p`.

    eval_imgs: entries for the parameters `made_with`, by category, area range and image. For values
    of `p` that `made_with` does not contain, the result is -1.
    """
    cat_ids = list(made_with.catIds) if made_with.useCats else [-1]
    areas, images = _tuples(made_with.areaRng), list(made_with.imgIds)
    wanted_cats = list(p.catIds) if p.useCats else [-1]
    wanted_areas = _tuples(p.areaRng)
    sizes = len(p.iouThrs), len(p.recThrs), len(wanted_cats), len(wanted_areas), len(p.maxDets)
    precision, scores = -np.ones(sizes), -np.ones(sizes)
    recall = -np.ones((sizes[0], *sizes[2:]))

    if len(eval_imgs) != len(cat_ids) * len(areas) * len(images):
        raise ValueError(
            f"evalImgs has {len(eval_imgs)} entries, not {len(cat_ids)} categories x {len(areas)} "
            f"ranges of areas x {len(images)} images of _paramsEval"
        )
    position = {one: n for n, one in enumerate(images)}
    chosen = [position[one] for one in p.imgIds if one in position]
    for k, cat_id in enumerate(wanted_cats):
        for a, area in enumerate(wanted_areas):
            if cat_id not in cat_ids or area not in areas:
                continue
            first = (cat_ids.index(cat_id) * len(areas) + areas.index(area)) * len(images)
            cells = [eval_imgs[first + i] for i in chosen]
            cells = [cell for cell in cells if cell is not None]
            if not cells:
                continue
            for m, limit in enumerate(p.maxDets):
                if limit in made_with.maxDets:
                    column = _column(cells, p, limit)
                    if column is not None:
                        precision[:, :, k, a, m], scores[:, :, k, a, m], recall[:, k, a, m] = column
    return {"precision": precision, "recall": recall, "scores": scores}


def _column(cells: list[Any], p: Any, limit: int) -> tuple[Floats, Floats, Floats] | None:
    """Returns precision (T, R), scores (T, R) and recall (T); None without objects."""
    scores = np.concatenate([cell["dtScores"][:limit] for cell in cells])
    objects = np.count_nonzero(np.concatenate([cell["gtIgnore"] for cell in cells]) == 0)
    if objects == 0:
        return None
    order = np.argsort(-scores, kind="mergesort")
    scores = scores[order]

    def joined(field: str) -> Any:
        parts = [np.asarray(cell[field])[:, :limit] for cell in cells]
        return np.concatenate(parts, axis=1)[:, order].astype(bool)

    matched, counted = joined("dtMatches"), ~joined("dtIgnore")
    right = np.cumsum(matched & counted, axis=1).astype(float)
    wrong = np.cumsum(~matched & counted, axis=1).astype(float)
    count = len(scores)
    best, best_scores = np.zeros((2, len(right), len(p.recThrs)))
    if count == 0:
        return best, best_scores, np.zeros(len(right))
    recalls = right / objects
    precisions = right / (wrong + right + np.spacing(1))
    envelope = np.maximum.accumulate(precisions[:, ::-1], axis=1)[:, ::-1]
    for t in range(len(right)):
        at = np.searchsorted(recalls[t], p.recThrs, side="left")
        reached = at < count
        best[t, reached] = envelope[t, at[reached]]
        best_scores[t, reached] = scores[at[reached]]
    return best, best_scores, recalls[:, -1]
