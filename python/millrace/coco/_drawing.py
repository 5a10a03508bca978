"""Draws annotations on matplotlib axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Record

_CROWD_COLOUR = np.array([2.0, 166.0, 101.0]) / 255


def show_annotations(coco: Any, anns: list[Record], draw_bbox: bool) -> Any:
    """See COCO.showAnns."""
    if len(anns) == 0:
        return 0
    if "segmentation" in anns[0] or "keypoints" in anns[0]:
        _draw(coco, anns, draw_bbox)
    elif "caption" in anns[0]:
        for ann in anns:
            print(ann["caption"])
    else:
        raise Exception("datasetType not supported: no segmentation, keypoints or caption")
    return None


def _draw(coco: Any, anns: list[Record], draw_bbox: bool) -> None:
    import matplotlib.pyplot as plt
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Polygon

    axes = plt.gca()
    axes.set_autoscale_on(False)
    outlines, colours = [], []
    for ann in anns:
        colour = (np.random.random(3) * 0.6 + 0.4).tolist()
        shape = ann.get("segmentation")
        parts = []
        if isinstance(shape, list):
            parts = [np.array(part).reshape(-1, 2) for part in shape]
        elif shape is not None:
            _draw_mask(axes, coco.annToMask(ann), bool(ann.get("iscrowd", 0)))
        if isinstance(ann.get("keypoints"), list):
            _draw_keypoints(plt, coco, ann, colour)
        if draw_bbox:
            x, y, width, height = ann["bbox"]
            right, bottom = x + width, y + height
            parts.append(np.array([[x, y], [x, bottom], [right, bottom], [right, y]]))
        outlines += [Polygon(part) for part in parts]
        colours += [colour] * len(parts)
    axes.add_collection(PatchCollection(outlines, facecolor=colours, linewidths=0, alpha=0.4))
    axes.add_collection(
        PatchCollection(outlines, facecolor="none", edgecolors=colours, linewidths=2)
    )


def _draw_mask(axes: Any, bitmap: Any, crowd: bool) -> None:
    colour = _CROWD_COLOUR if crowd else np.random.random(3)
    pixels = np.ones((*bitmap.shape, 3)) * colour
    axes.imshow(np.dstack((pixels, bitmap * 0.5)))


def _draw_keypoints(plt: Any, coco: Any, ann: Record, colour: list[float]) -> None:
    skeleton = np.array(coco.loadCats(ann["category_id"])[0]["skeleton"]) - 1
    x, y, visible = np.array(ann["keypoints"]).reshape(-1, 3).T
    for bone in skeleton:
        if np.all(visible[bone] > 0):
            plt.plot(x[bone], y[bone], linewidth=3, color=colour)
    for shown, edge in ((visible > 0, "k"), (visible > 1, colour)):
        plt.plot(
            x[shown],
            y[shown],
            "o",
            markersize=8,
            markerfacecolor=colour,
            markeredgecolor=edge,
            markeredgewidth=2,
        )

