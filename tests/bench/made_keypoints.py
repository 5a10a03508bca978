#!/usr/bin/env python3
"""Makes a data set of persons with keypoints: annotations, and detections near and far from them.

    tests/bench/made_keypoints.py FOLDER IMAGES DETECTIONS

Writes instances.json and keypoints.json to FOLDER, with DETECTIONS detections per image.
"""
import json
import os
import random
import sys

PARTS = 17
# COCO's sigmas: the deviation of a keypoint, relative to the square root of the person's area.
SIGMAS = [.026, .025, .025, .035, .035, .079, .079, .072, .072, .062, .062, .107, .107, .087, .087,
          .089, .089]
WIDTH, HEIGHT = 640, 480


def person(draw):
    """Returns [(x, y, visibility)] and a bounding box."""
    w, h = draw.uniform(20, 300), draw.uniform(30, 400)
    x, y = draw.uniform(0, WIDTH - w), draw.uniform(0, HEIGHT - h)
    parts = [(round(x + draw.random() * w), round(y + draw.random() * h),
              draw.choices([0, 1, 2], [3, 1, 6])[0]) for _ in range(PARTS)]
    return parts, [round(value, 2) for value in (x, y, w, h)]


def near(draw, parts, area):
    """Returns a detection of the person: precise, as good as a human annotator's, or poor."""
    spread = 2 * area ** 0.5 * draw.choice([.3, 1, 3])
    return [(x + draw.gauss(0, spread * sigma), y + draw.gauss(0, spread * sigma))
            for (x, y, _), sigma in zip(parts, SIGMAS)]


def anywhere(draw):
    return [(draw.uniform(0, WIDTH), draw.uniform(0, HEIGHT)) for _ in range(PARTS)]


def make(folder, images, detections):
    truth, found, draw = [], [], random.Random(7)
    for image in range(1, images + 1):
        people = [person(draw) for _ in range(draw.randrange(5))]
        for parts, box in people:
            seen = [part if part[2] else (0, 0, 0) for part in parts]
            truth.append({"id": len(truth) + 1, "image_id": image, "category_id": 1,
                          "iscrowd": int(draw.random() < .02), "bbox": box,
                          "area": round(.6 * box[2] * box[3], 4),
                          "num_keypoints": sum(1 for part in parts if part[2]),
                          "keypoints": [number for part in seen for number in part]})
        for _ in range(detections):
            parts, box = draw.choice(people) if people else ((), ())
            is_near = people and draw.random() < .6
            points = near(draw, parts, .6 * box[2] * box[3]) if is_near else anywhere(draw)
            found.append({"image_id": image, "category_id": 1, "score": round(draw.random(), 3),
                          "keypoints": [number for x, y in points
                                        for number in (round(x, 3), round(y, 3), 1)]})
    names = [f"part {i}" for i in range(PARTS)]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "instances.json"), "w") as file:
        json.dump({"images": [{"id": i, "width": WIDTH, "height": HEIGHT,
                               "file_name": f"{i:012d}.jpg"} for i in range(1, images + 1)],
                   "annotations": truth,
                   "categories": [{"id": 1, "name": "person", "keypoints": names,
                                   "skeleton": []}]}, file)
    with open(os.path.join(folder, "keypoints.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    make(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
