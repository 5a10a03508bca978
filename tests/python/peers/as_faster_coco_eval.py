"""A pytest plug-in that replaces the classes of faster_coco_eval with those of millrace.coco.

Loaded with `-p` before the peer's tests, so that `from faster_coco_eval import COCO` imports our
class. pycocotools, with which the tests compare, is not replaced."""

import sys
from types import ModuleType

import millrace.coco
from millrace.coco import mask


def module(name: str, **names: object) -> ModuleType:
    made = ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made
    return made


class COCOeval(millrace.coco.COCOeval):
    """Accepts the keywords of faster_coco_eval's constructor."""

    def __init__(self, *arguments, print_function=print, kpt_oks_sigmas=None, **keywords) -> None:
        super().__init__(*arguments, **keywords)
        if kpt_oks_sigmas is not None:
            self.params.kpt_oks_sigmas = kpt_oks_sigmas


def pytest_configure() -> None:
    names = {
        "COCO": millrace.coco.COCO,
        "COCOeval": COCOeval,
        "COCOeval_faster": COCOeval,
        "Params": millrace.coco.Params,
        "mask": mask,
    }
    core = module("faster_coco_eval.core", **names)
    for part in ("coco", "cocoeval", "faster_eval_api"):
        setattr(core, part, module(f"faster_coco_eval.core.{part}", **names))
    sys.modules["faster_coco_eval.core.mask"] = mask
    sys.modules["faster_coco_eval.mask_api_new_cpp"] = mask
    module("faster_coco_eval", core=core, mask_api_new_cpp=mask, __path__=[], **names)
