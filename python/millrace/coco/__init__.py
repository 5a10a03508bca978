"""COCO evaluation: pycocotools' classes and functions over Millrace's evaluator in C++.

``from millrace.coco import COCO, COCOeval, mask`` takes the place of pycocotools' imports;
``init_as_pycocotools()`` makes the imports of other packages ours.
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
