"""evalImgs and ious of an evaluation in C++."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _coco
from ._types import Record


class Details:
    """The arrays that _coco.Run.details returns for some parameters."""

    def __init__(self, run: _coco.Run, p: Any) -> None:
        self._p = p
        self._cat_ids = list(p.catIds) if p.useCats else [-1]
        self._images = {int(one): n for n, one in enumerate(p.imgIds)}
        self._arrays = run.details(np.asarray(p.imgIds, dtype=np.int64))

    def ious(self) -> dict[tuple[Any, Any], Any]:
        """Returns the IoU (D, G) by image and category; [] if there are no detections or no
        objects."""
        p, arrays = self._p, self._arrays
        all_ious: dict[tuple[Any, Any], Any] = {
            (image, category): [] for image in p.imgIds for category in self._cat_ids
        }
        for image, cell in zip(arrays["images"].tolist(), arrays["cells"].tolist()):
            category, found, objects, _, _, first = cell
            if found and objects:
                overlaps = arrays["overlaps"][first : first + found * objects]
                key = image, self._cat_ids[category]
                all_ious[key] = overlaps.reshape(found, objects)
        return all_ious

    def eval_imgs(self) -> list[Record | None]:
        """Returns the entries by category, area range and image; None for an empty entry."""
        p, arrays, images = self._p, self._arrays, list(self._p.imgIds)
        ranges, limit = list(p.areaRng), p.maxDets[-1]
        areas, thresholds = len(ranges), len(p.iouThrs)
        entries: list[Record | None] = [None] * (len(self._cat_ids) * areas * len(images))
        dt_ignore = arrays["dt_ignore"].view(np.bool_)
        gt_ignore = arrays["gt_ignore"].astype(np.int64)
        dt_matches, gt_matches = arrays["dt_matches"], arrays["gt_matches"]
        gt_ids, scores, dt_ids = arrays["gt_ids"], arrays["scores"], arrays["dt_ids"]
        for image_id, cell in zip(arrays["images"].tolist(), arrays["cells"].tolist()):
            category, found, objects, first_dt, first_gt, _ = cell
            image = self._images[image_id]
            ids = dt_ids[first_dt : first_dt + found].tolist()
            marks = scores[first_dt : first_dt + found].tolist()
            for a in range(areas):
                d = areas * thresholds * first_dt + a * thresholds * found
                g = areas * thresholds * first_gt + a * thresholds * objects
                o = areas * first_gt + a * objects
                d_end, g_end, o_end = d + thresholds * found, g + thresholds * objects, o + objects
                entries[(category * areas + a) * len(images) + image] = {
                    "image_id": images[image],
                    "category_id": self._cat_ids[category],
                    "aRng": ranges[a],
                    "maxDet": limit,
                    "dtIds": list(ids),
                    "gtIds": gt_ids[o:o_end].tolist(),
                    "dtMatches": dt_matches[d:d_end].reshape(thresholds, found),
                    "gtMatches": gt_matches[g:g_end].reshape(thresholds, objects),
                    "dtScores": list(marks),
                    "gtIgnore": gt_ignore[o:o_end],
                    "dtIgnore": dt_ignore[d:d_end].reshape(thresholds, found),
                }
        return entries
