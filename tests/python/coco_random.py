"""Small random data sets in COCO's format, with ties, crowds, empty images and unusual boxes."""

from __future__ import annotations

from typing import Any

import numpy as np

from millrace.coco import mask


def _shape(rng: np.random.Generator, box: list[float], side: int) -> Any:
    kind = rng.integers(3)
    x, y, w, h = box
    if kind == 0:  # polygons
        angles = np.sort(rng.random(int(rng.integers(3, 9)))) * 2 * np.pi
        points = np.stack([x + w / 2 + w / 2 * np.cos(angles), y + h / 2 + h / 2 * np.sin(angles)])
        return [points.T.ravel().round(2).tolist()]
    bitmap = np.zeros((side, side), np.uint8, order="F")
    bitmap[int(y) : int(y + h) + 1, int(x) : int(x + w) + 1] = 1
    bitmap &= rng.random((side, side)) < 0.9
    rle = mask.encode(bitmap)
    if kind == 1:
        return rle | {"counts": rle["counts"].decode()}
    return rle


def data_set(seed: int, images: int = 12, objects: int = 6) -> dict[str, Any]:
    """Returns a data set with instances: boxes, masks of all kinds, keypoints."""
    rng = np.random.default_rng(seed)
    ids = np.sort(rng.choice(10000, images, replace=False)).tolist()
    rng.shuffle(ids)
    side = 120
    categories = [3, 1, 18, 7]
    annotations = []
    for image in ids:
        for _ in range(rng.integers(0, objects + 1)):
            box = (rng.random(4) * [80, 80, 39, 39] + [0, 0, 1, 1]).round(rng.integers(0, 3))
            box = box.tolist()
            points = (rng.random((17, 3)) * 100).round(1)
            points[:, 2] = rng.integers(0, 3, 17) * (rng.random() < 0.8)
            annotations.append(
                {
                    "id": len(annotations) + int(seed % 2),  # pycocotools never matches id 0
                    "image_id": image,
                    "category_id": int(rng.choice(categories[:3])),
                    "bbox": box,
                    "area": box[2] * box[3] * rng.choice([1, 0.5, 5]),
                    "iscrowd": int(rng.random() < 0.15),
                    "segmentation": _shape(rng, box, side),
                    "keypoints": points.ravel().tolist(),
                    "num_keypoints": int((points[:, 2] > 0).sum()),
                }
            )
    return {
        "info": {"description": f"random {seed}"},
        "images": [
            {"id": i, "width": side, "height": side, "file_name": f"{i}.jpg"} for i in ids
        ],
        "annotations": annotations,
        "categories": [{"id": c, "name": f"c{c}", "supercategory": "s"} for c in categories],
    }


def results(data: dict[str, Any], seed: int, kind: str = "bbox") -> list[dict[str, Any]]:
    """Returns detections near the objects of a data set and elsewhere, many with equal scores."""
    rng = np.random.default_rng(seed + 1000)
    side = 120
    found = []
    categories = [3, 1, 18, 7]
    for image in data["images"]:
        objects = [a for a in data["annotations"] if a["image_id"] == image["id"]]
        for _ in range(rng.integers(0, 14)):
            one: dict[str, Any] = {
                "image_id": image["id"],
                "category_id": int(rng.choice(categories)),
                "score": float(rng.random().__round__(int(rng.integers(1, 3)))),
            }
            near = objects[rng.integers(len(objects))] if objects and rng.random() < 0.7 else None
            if near:
                box = near["bbox"] + rng.normal(0, 2, 4) * (rng.random() < 0.7)
                if rng.random() < 0.8:
                    one["category_id"] = near["category_id"]
            else:
                box = rng.random(4) * [80, 80, 39, 39]
            box = np.maximum(box, [0, 0, 1, 1]).round(2).tolist()
            if kind == "keypoints":
                points = (rng.random((17, 3)) * 100).round(1)
                if near:
                    points = np.reshape(near["keypoints"], (17, 3)) + rng.normal(0, 3, (17, 3))
                one["keypoints"] = points.ravel().tolist()
            if kind in ("bbox", "both"):
                one["bbox"] = box
            if kind in ("segm", "both"):
                one["segmentation"] = mask.frPyObjects([box], side, side)[0]
                if rng.random() < 0.5:
                    one["segmentation"]["counts"] = one["segmentation"]["counts"].decode()
            found.append(one)
    rng.shuffle(found)  # type: ignore[arg-type]
    return found
