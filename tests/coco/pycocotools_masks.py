"""What pycocotools makes of the cases in a JSON file (pycocotools_masks_test.cpp writes them): IN
OUT.
"""
import json
import sys

import numpy as np
from pycocotools import mask


def text(rle):
    return {"size": rle["size"], "counts": rle["counts"].decode()}


def facts(rle):
    return text(rle) | {"area": int(mask.area(rle)), "bbox": mask.toBbox(rle).tolist()}


def main():
    with open(sys.argv[1]) as f:
        cases = json.load(f)
    made, out = [], {}
    for c in cases["polygons"]:
        made.append(mask.merge(mask.frPyObjects(c["parts"], c["height"], c["width"])))
    out["polygons"] = [facts(r) for r in made]
    out["boxes"] = [facts(mask.frPyObjects(np.array([c["box"]]), c["height"], c["width"])[0])
                    for c in cases["boxes"]]
    out["runs"] = [facts(mask.frPyObjects([c], *c["size"])[0]) for c in cases["runs"]]
    out["bitmaps"] = []
    for c in cases["bitmaps"]:
        bitmap = np.array(c["pixels"], dtype=np.uint8).reshape(c["height"], c["width"])
        rle = mask.encode(np.asfortranarray(bitmap))
        assert (mask.decode(rle) == (bitmap != 0)).all()
        out["bitmaps"].append(facts(rle))
    out["groups"] = []
    for c in cases["groups"]:
        dt, gt = ([{"size": c["size"], "counts": s.encode()} for s in c[side]]
                  for side in ("found", "truth"))
        out["groups"].append({"union": text(mask.merge(dt)),
                              "shared": text(mask.merge(dt, intersect=True)),
                              "iou": mask.iou(dt, gt, c["crowd"]).ravel().tolist()})
    with open(sys.argv[2], "w") as f:
        json.dump(out, f)


if __name__ == "__main__":
    main()
