"""Computes Pascal VOC's AP of each category at an IoU of 0.5, as its development kit does.

usage: voc_answers.py GT DT OUT    annotations and results in COCO's formats; OUT is a JSON list of
                                   [category id, AP, 11-point AP]
"""
import json
import sys

import numpy as np


def overlaps(box, others):
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[:2] + box[2:], others[:, :2] + others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    return shared / (box[2] * box[3] + others[:, 2] * others[:, 3] - shared)


def precision_recall(objects, found):
    difficult = {key: np.array([bool(o["iscrowd"] or o.get("ignore", 0)) for o in own])
                 for key, own in objects.items()}
    boxes = {key: np.array([o["bbox"] for o in own], float) for key, own in objects.items()}
    taken = {key: np.zeros(len(own), bool) for key, own in objects.items()}
    count = sum((~own).sum() for own in difficult.values())
    order = np.argsort([-one["score"] for one in found], kind="stable")
    right, wrong = np.zeros(len(found)), np.zeros(len(found))
    for rank, one in enumerate(found[i] for i in order):
        key = one["image_id"]
        iou = overlaps(np.array(one["bbox"], float), boxes[key]) if key in boxes else np.zeros(1)
        best = iou.argmax()
        if iou[best] < 0.5:
            wrong[rank] = 1
        elif not difficult[key][best]:
            (wrong if taken[key][best] else right)[rank] = 1
            taken[key][best] = True
    right, wrong = right.cumsum(), wrong.cumsum()
    seen = right + wrong > 0
    return right[seen] / (right + wrong)[seen], right[seen] / max(count, 1), count


def area(precision, recall):
    recall = np.concatenate(([0], recall, [1]))
    precision = np.concatenate(([0], precision, [0]))
    precision = np.maximum.accumulate(precision[::-1])[::-1]
    steps = np.flatnonzero(recall[1:] != recall[:-1])
    return float(((recall[steps + 1] - recall[steps]) * precision[steps + 1]).sum())


def eleven(precision, recall):
    points = [precision[recall >= t].max(initial=0) for t in np.arange(0, 1.1, 0.1)]
    return float(np.mean(points))


truth, results = (json.load(open(name)) for name in sys.argv[1:3])
answers = []
for category in truth["categories"]:
    objects = {}
    for one in truth["annotations"]:
        if one["category_id"] == category["id"]:
            objects.setdefault(one["image_id"], []).append(one)
    own = [one for one in results if one["category_id"] == category["id"]]
    precision, recall, count = precision_recall(objects, own)
    both = [area(precision, recall), eleven(precision, recall)] if count else [-1, -1]
    answers.append([category["id"], *both])
json.dump(answers, open(sys.argv[3], "w"))
