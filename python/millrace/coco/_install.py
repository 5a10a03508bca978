"""Millrace in pycocotools' place."""

from __future__ import annotations

import sys
import types


def init_as_pycocotools() -> None:
    """From now on `import pycocotools`, its `coco`, `cocoeval` and `mask` give millrace.coco.

    Call it before the packages that import pycocotools: what they have imported already stays.
    """
    from . import coco, cocoeval, mask

    package = types.ModuleType("pycocotools", "millrace.coco in pycocotools' place.")
    package.__path__ = []
    package.__version__ = "2.0.11"  # type: ignore[attr-defined]
    for name, module in (("coco", coco), ("cocoeval", cocoeval), ("mask", mask), ("_mask", mask)):
        setattr(package, name, module)
        sys.modules[f"pycocotools.{name}"] = module
    sys.modules["pycocotools"] = package
