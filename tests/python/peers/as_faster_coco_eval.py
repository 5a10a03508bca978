"""A pytest plugin: faster_coco_eval's names, and pycocotools', are millrace.coco's.

Loaded with `-p` before the peer's tests, so that `from faster_coco_eval import COCO` in them gives
ours. pycocotools itself, which they compare with, stays what it is."""

import sys
from types import ModuleType

import millrace.coco
from millrace.coco import mask


def module(name: str, **names: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    return made


def pytest_configure() -> None:
    names = {
        "COCO": millrace.coco.COCO,
        "COCOeval": millrace.coco.COCOeval,
        "COCOeval_faster": millrace.coco.COCOeval,
        "Params": millrace.coco.Params,
        "mask": mask,
    }
    core = module("faster_coco_eval.core", **names)
    for part in ("coco", "cocoeval", "faster_eval_api"):
        setattr(core, part, module(f"faster_coco_eval.core.{part}", **names))
    sys.modules["faster_coco_eval.core.mask"] = mask
    sys.modules["faster_coco_eval.mask_api_new_cpp"] = mask
    module("faster_coco_eval", core=core, mask_api_new_cpp=mask, __path__=[], **names)
