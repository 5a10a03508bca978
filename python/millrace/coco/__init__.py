"""COCO evaluation: pycocotools' classes and functions, based on Millrace's C++ evaluator.

``from millrace.coco import COCO, COCOeval, mask`` replaces the imports of pycocotools;
``init_as_pycocotools()`` redirects the imports of other packages.
"""

from . import mask
from ._install import init_as_pycocotools
from .coco import COCO
from .cocoeval import COCOeval
from .evaluator import Evaluation, Evaluator
from .lvis import LVIS, LVISEval, LVISResults
from .params import Params

__all__ = [
    "COCO",
    "COCOeval",
    "Evaluation",
    "Evaluator",
    "LVIS",
    "LVISEval",
    "LVISResults",
    "Params",
    "init_as_pycocotools",
    "mask",
]
