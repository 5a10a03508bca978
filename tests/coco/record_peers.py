"""Records the results of pycocotools 2.0.11 and lvis 0.5.3 for random sets and unusual parameters:
tests/coco/fixture/peers.json, read by tests/coco/peers_test.cpp.

usage: record_peers.py OUT

For keypoints, numpy's exp is replaced by the C library's: on processors with AVX-512, numpy's
differs in the last bit.
"""
import contextlib
import copy
import io
import json
import math
import sys

import lvis
import numpy as np
from pycocotools import mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

np.float = float  # lvis 0.5.3 needs it; newer numpy versions lack it
np.exp = np.vectorize(math.exp, otypes=[float])


def digest(values):
    """Returns a digest of the bits of doubles, computed as in peers_test.cpp."""
    bits = np.ascontiguousarray(np.asarray(values, dtype=np.float64).ravel()).view(np.uint64)
    odd = 2 * np.arange(len(bits), dtype=np.uint64) + np.uint64(1)
    return f"{int((bits * odd).sum(dtype=np.uint64)):016x}"


class MadeSet:
    """Random objects and detections, with ties, crowds, an id of 0, areas at the limits of area
    ranges, images without objects or detections, and categories without objects."""

    def __init__(self, seed, points=17, nan=False):
        self.rng, self.points = np.random.default_rng(seed), points
        self.gt = {"images": [], "annotations": [], "categories": [
            {"id": i, "name": f"c{i}", "frequency": f}
            for i, f in [(7, "r"), (0, "f"), (2, "c"), (9, "f")]]}
        self.dt = []
        for i in self.rng.permutation(8).tolist():
            self.image(5 * i)
        self.rng.shuffle(self.dt)
        if nan:
            for i in range(0, len(self.dt), 9):
                self.dt[i]["score"] = None  # JSON has no NaN

    def below(self, n):
        return int(self.rng.integers(0, n))

    def image(self, number):
        ids = [0, 2, 7, 9]
        pick = lambda n: sorted(self.rng.choice(ids, n, replace=False).tolist())
        self.gt["images"].append({"id": number, "file_name": "x", "height": 120, "width": 150,
                                  "neg_category_ids": pick(self.below(3)),
                                  "not_exhaustive_category_ids": pick(self.below(2))})
        for _ in range(0 if number == 10 else self.below(7)):
            box = [round(float(v), 2) for v in self.rng.uniform([0, 0, 5, 5], [80, 70, 65, 45])]
            category = [7, 7, 0, 2][self.below(4)]
            seen = self.below(4)
            pose = self.pose(box)
            for i in range(self.points):
                pose[3 * i + 2] = 0 if seen == 0 else self.below(3)
            areas = [1024, 9216, 0, round(box[2] * box[3], 3)]
            one = {"id": len(self.gt["annotations"]), "image_id": number, "category_id": category,
                   "bbox": box, "area": areas[min(self.below(9), 3)],
                   "iscrowd": int(self.below(7) == 0),
                   "segmentation": self.outline(box), "keypoints": pose,
                   "num_keypoints": sum(v > 0 for v in pose[2::3])}
            if self.below(6) == 0:
                one["ignore"] = 1
            self.gt["annotations"].append(one)
            for _ in range(self.below(5)):
                by = self.rng.normal(0, [0, 2, 6][self.below(3)], 4)
                near = [round(max(float(v), 0.5), 2) for v in np.array(box) + by]
                self.detection(number, category if self.below(5) else 9, near, pose)
        for _ in range(self.below(4)):
            width = 0 if self.below(3) == 0 else 30.5
            self.detection(number, ids[self.below(4)], [3, 4, width, 20], None)

    def outline(self, b):
        x, y = b[0] + b[2], b[1] + b[3]
        return [[b[0], b[1], x, b[1], x, y, b[0], y]]

    def pose(self, box):
        x = self.rng.uniform(box[0], box[0] + box[2], self.points).round(1)
        y = self.rng.uniform(box[1], box[1] + box[3], self.points).round(1)
        return np.stack([x, y, np.ones(self.points)], 1).ravel().tolist()

    def detection(self, image, category, box, pose):
        keypoints = self.pose(box)
        if pose and self.below(4):
            moved = self.rng.normal(0, [0, 1, 4][self.below(3)], len(pose)).round(1)
            keypoints = [round(p + float(m), 1) for p, m in zip(pose, moved)]
        keypoints[2::3] = [1] * self.points
        rle = mask.merge(mask.frPyObjects(self.outline(box), 120, 150))
        self.dt.append({"image_id": image, "category_id": category, "bbox": box,
                        "keypoints": keypoints, "score": self.below(11) / 10,
                        "segmentation": {"size": rle["size"], "counts": rle["counts"].decode()}})


def detections(case, made):
    found = copy.deepcopy(made.dt)
    for one in found:
        one["score"] = math.nan if one["score"] is None else one["score"]
        for name in case.get("without", []):
            del one[name]
    return found


def coco_answer(case, made):
    truth = COCO()
    truth.dataset = copy.deepcopy(made.gt)
    truth.createIndex()
    run = COCOeval(truth, truth.loadRes(detections(case, made)), case["iou"])
    p = run.params
    p.useCats = case.get("use_cats", 1)
    for name, field in [("iou_thrs", "iouThrs"), ("rec_thrs", "recThrs")]:
        if name in case:
            setattr(p, field, np.array(case[name], dtype=float))
    for name, field in [("max_dets", "maxDets"), ("cat_ids", "catIds"), ("img_ids", "imgIds"),
                        ("area_rng", "areaRng"), ("area_lbl", "areaRngLbl")]:
        if name in case:
            setattr(p, field, copy.deepcopy(case[name]))
    if "sigmas" in case:
        p.kpt_oks_sigmas = np.array(case["sigmas"])
    run.evaluate()
    details, images, areas, categories = [], len(p.imgIds), len(p.areaRng), p.catIds
    for i, image in enumerate(p.imgIds):
        for k, category in enumerate(categories if p.useCats else [-1]):
            for a in range(areas):
                e = run.evalImgs[(k * areas + a) * images + i]
                for name in ("dtIds", "dtScores", "gtIds", "gtIgnore",
                             "dtMatches", "gtMatches", "dtIgnore") if e else ():
                    details += np.asarray(e[name], dtype=float).ravel().tolist()
            details += np.asarray(run.ious[image, category], dtype=float).ravel().tolist()
    case["cat_ids"] = list(map(int, categories))
    run.accumulate()
    answer = {name: digest(run.eval[name]) for name in ("precision", "recall", "scores")}
    answer |= {"details": digest(details), "detail_count": len(details)}
    with contextlib.suppress(IndexError):  # fewer than three limits
        run.summarize()
        answer["stats"] = run.stats.tolist()
    return answer


def lvis_answer(case, made):
    truth = lvis.LVIS.__new__(lvis.LVIS)
    truth.logger, truth.dataset = lvis.lvis.logging.getLogger(), copy.deepcopy(made.gt)
    truth._create_index()
    found = lvis.LVISResults(truth, detections(case, made), max_dets=case["max_dets"][0])
    run = lvis.LVISEval(truth, found, case["iou"])
    for name in ("cat_ids", "img_ids", "iou_thrs", "rec_thrs"):
        if name in case:
            setattr(run.params, name, np.array(case[name]) if "thrs" in name else list(case[name]))
    run.run()
    answer = {name: digest(run.eval[name]) for name in ("precision", "recall")}
    return answer | {"stats": list(map(float, run.results.values()))}


def cases():
    many = np.linspace(.05, .98, 50).tolist()
    ranges = [[0, 1e10], [0, 500.5], [400, 1024], [1024, 1024], [9216, 1e10], [0, 0]]
    labels = ["all", "tiny", "medium", "small", "large", "none"]
    odd = {"iou_thrs": [.9, .5, .75, .5, 1, 0, 1.5],
           "rec_thrs": [.5, .1, 1, 0, .1, -1, .33, .7, 2, .2],
           "area_rng": ranges, "area_lbl": labels, "max_dets": [7, 1, 1, 300]}
    for s in range(4):
        for iou in ("bbox", "segm", "keypoints"):
            yield s, "pycocotools", {"iou": iou}
            yield s, "pycocotools", {"iou": iou} | odd
            yield s, "pycocotools", {"iou": iou, "iou_thrs": many, "rec_thrs": [.5],
                                     "max_dets": [2], "cat_ids": [9, 7, 55, 7],
                                     "img_ids": [35, 0, 5, 10, 10, 15]}
            yield s, "pycocotools", {"iou": iou, "iou_thrs": [.5], "area_rng": [[0, 1e10]],
                                     "area_lbl": ["all"], "rec_thrs": [.9, .2],
                                     "max_dets": [3, 20, 2, 100]}
        for iou in ("bbox", "segm"):
            yield s, "pycocotools", {"iou": iou, "use_cats": 0}
            yield s, "pycocotools", {"iou": iou, "use_cats": 0, "cat_ids": [7, 0]} | odd
            yield s, "pycocotools", {"iou": iou, "without": ["bbox"]}
            if s != 3:  # Python's sort has no defined order with NaN
                for limit in (300, 6):
                    yield s, "lvis", {"iou": iou, "max_dets": [limit]}
                yield s, "lvis", {"iou": iou, "max_dets": [300], "cat_ids": [9, 0, 7],
                                  "img_ids": [35, 0, 5, 10], "iou_thrs": many[:20],
                                  "rec_thrs": odd["rec_thrs"]}
        yield s, "pycocotools", {"iou": "keypoints", "without": ["bbox", "segmentation"]}


def main():
    sets = [MadeSet(seed, points=[17, 5, 3, 17][seed], nan=seed == 3) for seed in range(4)]
    out = {"sets": [{"gt": made.gt, "dt": made.dt} for made in sets], "cases": []}
    for s, peer, case in cases():
        if case["iou"] == "keypoints" and sets[s].points < 17:
            case["sigmas"] = [.02, .05, .1, .3, .01][:sets[s].points]
        with contextlib.redirect_stdout(io.StringIO()):
            answer = (lvis_answer if peer == "lvis" else coco_answer)(case, sets[s])
        out["cases"].append({"set": s, "peer": peer} | case | {"answer": answer})
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


main()
