"""Masks in run-length encoding, with pycocotools.mask's names, arguments, shapes and order.

An RLE is a dict ``{"size": [height, width], "counts": bytes}``; counts may also be given as str.
Bitmaps are uint8, (H, W) or (H, W, N), non-zero = inside; boxes are x y width height in pixels.
Invalid input raises ValueError, TypeError or KeyError with the argument's name and index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from .. import _coco
from ._types import RLE, Bitmaps, Floats

__all__ = [
    "area",
    "decode",
    "encode",
    "frBbox",
    "frPoly",
    "frPyObjects",
    "frUncompressedRLE",
    "iou",
    "merge",
    "toBbox",
]


def encode(bimask: npt.NDArray[Any]) -> Any:
    """Returns the RLE of a bitmap (H, W), or a list of the N RLEs of bitmaps (H, W, N).

    Accepts uint8 and bool with any strides; Fortran order, which pycocotools requires, and a single
    bitmap in C order are read without a copy. Raises ValueError for other types or dimensions.
    """
    if not isinstance(bimask, np.ndarray):
        raise TypeError(f"bimask: expected an array, not {type(bimask).__name__}")
    if bimask.dtype not in (np.dtype(np.uint8), np.dtype(np.bool_)):
        raise ValueError(f"bimask: Buffer dtype mismatch: expected uint8, not {bimask.dtype}")
    if bimask.ndim not in (2, 3):
        raise ValueError(f"bimask: expected shape (H, W) or (H, W, N), not {bimask.shape}")
    pixels = bimask.view(np.uint8)
    if bimask.ndim == 2:
        return _coco.encode(pixels[None])[0]
    return _coco.encode(pixels.transpose(2, 0, 1))


def decode(rleObjs: RLE | Sequence[RLE]) -> Bitmaps:
    """Returns bitmaps of 0 and 1 in Fortran order: (H, W) for one RLE, (H, W, N) for a list of RLEs
    of the same size."""
    if isinstance(rleObjs, dict):
        return _coco.decode([rleObjs]).T[:, :, 0]
    return _coco.decode(rleObjs).T


def area(rleObjs: RLE | Sequence[RLE]) -> Any:
    """Returns the number of pixels inside, uint32: a number for one RLE, (N) for a list."""
    if isinstance(rleObjs, dict):
        return _coco.area([rleObjs])[0]
    return _coco.area(rleObjs)


def toBbox(rleObjs: RLE | Sequence[RLE]) -> Floats:
    """Returns the bounding boxes of masks, float64: (4) for one RLE, (N, 4) for a list."""
    if isinstance(rleObjs, dict):
        return _coco.to_bbox([rleObjs]).reshape(4)
    return _coco.to_bbox(rleObjs)


def merge(rleObjs: Sequence[RLE], intersect: bool | int = False) -> RLE:
    """Returns the union or intersection of RLEs; ValueError if their sizes differ."""
    return _coco.merge(rleObjs, bool(intersect))


def _boxes(boxes: Any, name: str) -> Floats:
    rows = np.ascontiguousarray(boxes, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 4:
        raise ValueError(f"{name}: expected boxes (N, 4), not {rows.shape}")
    return rows


def _as_boxes(objs: Any, name: str) -> Floats | None:
    """Returns an argument of `iou` as boxes (N, 4); None if it is a list of RLEs."""
    if isinstance(objs, np.ndarray):
        if objs.ndim != 2 or objs.shape[1] != 4:
            raise ValueError(
                f"{name}: numpy ndarray input is only for *bounding boxes* and should have Nx4 "
                f"dimension, not {objs.shape}"
            )
        return _boxes(objs, name)
    if not isinstance(objs, list):
        raise TypeError(
            f"{name}: unrecognized type {type(objs).__name__}. RLEs (rle), np.ndarray (box), and "
            "list (box) are supported."
        )
    if all(isinstance(one, dict) for one in objs):
        return None
    if all(isinstance(one, (list, tuple, np.ndarray)) and len(one) == 4 for one in objs):
        return _boxes(objs, name)
    raise ValueError(f"{name}: list input can be bounding box (Nx4) or RLEs ([RLE])")


def iou(dt: Any, gt: Any, pyiscrowd: Any) -> Any:
    """Returns the IoU of each detection with each object, float64 (D, G); ``[]`` if either is
    empty.

    Both are lists of RLEs, lists of boxes or arrays (N, 4). For a crowd, the union is replaced by
    the detection's area. Masks of different sizes give -1.
    """
    iscrowd = np.ascontiguousarray(pyiscrowd, dtype=np.bool_).view(np.uint8)
    if iscrowd.shape != (len(gt),):
        raise AssertionError("iou(iscrowd=) must have the same length as gt")
    boxes, objects = _as_boxes(dt, "dt"), _as_boxes(gt, "gt")
    if len(dt) == 0 or len(gt) == 0:
        return []
    if boxes is not None and objects is not None:
        return _coco.box_iou(boxes, objects, iscrowd)
    if boxes is not None or objects is not None:
        raise TypeError(
            "The dt and gt should have the same data type, either RLEs, list or np.ndarray"
        )
    return _coco.mask_iou(dt, gt, iscrowd)


def frBbox(bb: Any, h: int, w: int) -> list[RLE]:
    """Converts boxes (N, 4) to RLEs of h x w pixels."""
    return _coco.from_boxes(_boxes(bb, "bb"), h, w)


def frPoly(poly: Sequence[Sequence[float]], h: int, w: int) -> list[RLE]:
    """Converts each polygon x0 y0 x1 y1 ... to an RLE of h x w pixels."""
    return _coco.from_polygons(poly, h, w)


def frUncompressedRLE(ucRles: Sequence[RLE], h: int, w: int) -> list[RLE]:
    """Converts RLEs whose counts are lists of numbers; their own sizes are used."""
    return _coco.from_uncompressed(ucRles)


@overload
def frPyObjects(pyobj: RLE, h: int, w: int) -> RLE: ...
@overload
def frPyObjects(pyobj: Any, h: int, w: int) -> Any: ...
def frPyObjects(pyobj: Any, h: int, w: int) -> Any:
    """Converts boxes, polygons or RLEs with uncompressed counts to RLEs: a list to a list, one to
    one.

    Four numbers are a box, more are a polygon, as in pycocotools.
    """
    if isinstance(pyobj, np.ndarray):
        return frBbox(pyobj, h, w)
    if isinstance(pyobj, dict):
        return frUncompressedRLE([pyobj], h, w)[0]
    if not isinstance(pyobj, (list, tuple)):
        raise TypeError(f"pyobj: input type {type(pyobj).__name__} is not supported.")
    if not pyobj:
        return []
    first = pyobj[0]
    if isinstance(first, dict):
        return frUncompressedRLE(pyobj, h, w)
    if isinstance(first, (list, tuple, np.ndarray)):
        return frBbox(pyobj, h, w) if len(first) == 4 else frPoly(pyobj, h, w)
    return frBbox([pyobj], h, w)[0] if len(pyobj) == 4 else frPoly([pyobj], h, w)[0]
