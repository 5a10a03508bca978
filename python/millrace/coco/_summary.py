"""The metrics that COCOeval.summarize prints."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Floats, Record

# Kind, IoU threshold (None = all), area range, index into maxDets (None = 100 detections).
_DETECTIONS = [
    ("AP", None, "all", None),
    ("AP", 0.5, "all", 2),
    ("AP", 0.75, "all", 2),
    ("AP", None, "small", 2),
    ("AP", None, "medium", 2),
    ("AP", None, "large", 2),
    ("AR", None, "all", 0),
    ("AR", None, "all", 1),
    ("AR", None, "all", 2),
    ("AR", None, "small", 2),
    ("AR", None, "medium", 2),
    ("AR", None, "large", 2),
]
_KEYPOINTS = [
    (kind, threshold, area)
    for kind in ("AP", "AR")
    for threshold, area in [
        (None, "all"),
        (0.5, "all"),
        (0.75, "all"),
        (None, "medium"),
        (None, "large"),
    ]
]


def figure(
    p: Any, tables: Record, kind: str, threshold: float | None, area: str, limit: int
) -> tuple[Any, str]:
    """Returns the mean of the valid entries of the tables, or -1, and the line to print."""
    areas = [n for n, name in enumerate(p.areaRngLbl) if name == area]
    limits = [n for n, one in enumerate(p.maxDets) if one == limit]
    table = tables["precision" if kind == "AP" else "recall"]
    if threshold is not None:
        table = table[np.where(threshold == np.asarray(p.iouThrs))[0]]
    values = table[..., areas, limits]
    values = values[values > -1]
    mean = -1 if len(values) == 0 else np.mean(values)
    title = "Average Precision" if kind == "AP" else "Average Recall"
    overlap = (
        f"{p.iouThrs[0]:0.2f}:{p.iouThrs[-1]:0.2f}" if threshold is None else f"{threshold:0.2f}"
    )
    line = (
        f" {title:<18} ({kind}) @[ IoU={overlap:<9} | area={area:>6s} | maxDets={limit:>3d} ]"
        f" = {mean:0.3f}"
    )
    return mean, line


def detection_stats(p: Any, tables: Record) -> tuple[Floats, list[str]]:
    """Returns the 12 metrics of boxes and masks. With fewer than 3 limits, the last limit is used
    for the missing ones."""
    stats, lines = np.zeros(12), []
    few = len(p.maxDets) < 3
    for n, (kind, threshold, area, which) in enumerate(_DETECTIONS):
        if which is None:
            limit = p.maxDets[-1] if few else 100
        else:
            limit = p.maxDets[min(which, len(p.maxDets) - 1)]
        stats[n], line = figure(p, tables, kind, threshold, area, limit)
        lines.append(line)
    return stats, lines


def keypoint_stats(p: Any, tables: Record) -> tuple[Floats, list[str]]:
    """Returns the 10 metrics of keypoints, for 20 detections."""
    stats, lines = np.zeros(10), []
    for n, (kind, threshold, area) in enumerate(_KEYPOINTS):
        stats[n], line = figure(p, tables, kind, threshold, area, 20)
        lines.append(line)
    return stats, lines
