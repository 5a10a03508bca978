"""Installs millrace.coco as pycocotools."""

from __future__ import annotations

import sys
import types


def init_as_pycocotools() -> None:
    """Redirects `import pycocotools`, also of `coco`, `cocoeval` and `mask`, to millrace.coco.

    Call it before importing packages that use pycocotools; earlier imports keep pycocotools.
    """
    from . import coco, cocoeval, mask

    package = types.ModuleType("pycocotools", "millrace.coco in place of pycocotools.")
    package.__path__ = []
    package.__version__ = "2.0.11"  # type: ignore[attr-defined]
    for name, module in (("coco", coco), ("cocoeval", cocoeval), ("mask", mask), ("_mask", mask)):
        setattr(package, name, module)
        sys.modules[f"pycocotools.{name}"] = module
    sys.modules["pycocotools"] = package
