"""Draws objects on images, for notebooks. Needs Pillow: `pip install
"millrace[pictures]"`.

    truth = COCO("sample/annotations/instances_val2017.json")
    grid([annotated(truth, "sample/val2017", image) for image in truth.getImgIds()[:8]])

A class has the same colour in every image."""

from __future__ import annotations

import colorsys
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw, ImageFont

__all__ = ["annotated", "colour", "draw", "found", "grid"]


def colour(label: int) -> tuple[int, int, int]:
    """Returns the colour of a class; consecutive classes differ."""
    red, green, blue = colorsys.hsv_to_rgb(label * 0.381966 % 1, 0.85, 1)
    return round(red * 255), round(green * 255), round(blue * 255)


def draw(
    image: ArrayLike | Image.Image,
    boxes: ArrayLike,
    labels: ArrayLike,
    *,
    masks: ArrayLike | Sequence[NDArray[np.bool_]] | None = None,
    texts: Sequence[str] | None = None,
) -> Image.Image:
    """Returns a copy of an image with objects drawn on it.

    `image`: (H, W, 3) uint8, RGB, or a Pillow image. `boxes`: (objects, 4), x1 y1 x2 y2 in pixels
    of the image. `labels`: (objects,) integers, which determine the colours. `masks`: (objects, H,
    W) bool, blended half with their colour. `texts`: a line for each object, above its box.

    Raises ValueError if the shapes do not match."""
    picture = image if isinstance(image, Image.Image) else Image.fromarray(_pixels(image))
    corners = np.asarray(boxes, dtype=np.float64).reshape(-1, 4)
    classes = np.asarray(labels, dtype=np.int64).reshape(-1)
    count = len(corners)
    shapes = [] if masks is None else list(np.asarray(masks, dtype=bool))
    lines = [] if texts is None else list(texts)
    for name, number in (("labels", len(classes)), ("masks", len(shapes)), ("texts", len(lines))):
        if number != count and (number > 0 or name == "labels"):
            raise ValueError(f"{name} has {number} entries for {count} boxes")
    pixels = np.array(picture.convert("RGB"))
    for shape, label in zip(shapes, classes):
        if shape.shape != pixels.shape[:2]:
            raise ValueError(f"mask of shape {shape.shape} for an image of {pixels.shape[:2]}")
        pixels[shape] = pixels[shape] // 2 + np.array(colour(int(label)), np.uint8) // 2
    picture = Image.fromarray(pixels)
    canvas = ImageDraw.Draw(picture)
    for number in range(count):
        _outline(canvas, corners[number], int(classes[number]), lines[number] if lines else "")
    return picture


def annotated(coco: Any, folder: str | os.PathLike[str], image_id: int) -> Image.Image:
    """Returns an image from a `millrace.coco.COCO` with its objects drawn: boxes, names and, if
    any, masks.

    `folder`: folder of the images. Raises OSError if the file is not found."""
    return _with_objects(coco, folder, image_id, coco.loadAnns(coco.getAnnIds(imgIds=[image_id])))


def found(
    coco: Any, results: Any, folder: str | os.PathLike[str], image_id: int, score: float = 0.5
) -> Image.Image:
    """Returns an image with detections drawn: those in `results`, from `coco.loadRes`, with at
    least `score`."""
    objects = results.loadAnns(results.getAnnIds(imgIds=[image_id]))
    return _with_objects(coco, folder, image_id, [one for one in objects if one["score"] >= score])


def grid(
    pictures: Sequence[Image.Image],
    *,
    columns: int = 4,
    width: int = 240,
    captions: Sequence[str] | None = None,
) -> Image.Image:
    """Arranges images in rows, each up to `width` pixels wide and high, with a caption below.

    Raises ValueError if there are no images."""
    if not pictures:
        raise ValueError("no pictures")
    line = 16 if captions else 0
    rows = -(-len(pictures) // columns)
    sheet = Image.new("RGB", (min(columns, len(pictures)) * width, rows * (width + line)), "white")
    canvas = ImageDraw.Draw(sheet)
    for number, picture in enumerate(pictures):
        scale = (width - 4) / max(picture.size)
        sides = [max(1, round(side * scale)) for side in picture.size]
        small = picture.resize((sides[0], sides[1]))
        x, y = number % columns * width, number // columns * (width + line)
        sheet.paste(small, (x + (width - small.width) // 2, y + (width - small.height) // 2))
        if captions:
            canvas.text((x + 4, y + width), captions[number], fill="black", font=_font())
    return sheet


def _with_objects(
    coco: Any, folder: str | os.PathLike[str], image_id: int, objects: list[dict[str, Any]]
) -> Image.Image:
    picture = Image.open(Path(folder) / coco.loadImgs([image_id])[0]["file_name"]).convert("RGB")
    boxes = [[x, y, x + w, y + h] for x, y, w, h in (one["bbox"] for one in objects)]
    names = {one["id"]: one["name"] for one in coco.loadCats(coco.getCatIds())}
    texts = [names.get(one["category_id"], "?") for one in objects]
    texts = [
        f"{text} {one['score']:.2f}" if "score" in one else text
        for text, one in zip(texts, objects)
    ]
    shaped = bool(objects) and all(one.get("segmentation") for one in objects)
    return draw(
        picture,
        np.array(boxes).reshape(-1, 4),
        [one["category_id"] for one in objects],
        masks=[coco.annToMask(one).astype(bool) for one in objects] if shaped else None,
        texts=texts,
    )


def _pixels(image: ArrayLike) -> NDArray[np.uint8]:
    pixels = np.asarray(image)
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"expected an image (H, W, 3) uint8, not {pixels.shape} {pixels.dtype}")
    return pixels


def _outline(
    canvas: ImageDraw.ImageDraw, box: NDArray[np.float64], label: int, text: str
) -> None:
    x1, y1, x2, y2 = (float(side) for side in box)
    canvas.rectangle((x1, y1, max(x1, x2), max(y1, y2)), outline=colour(label), width=2)
    if not text:
        return
    left, top, right, bottom = canvas.textbbox((x1, max(0.0, y1 - 12)), text, font=_font())
    canvas.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=colour(label))
    canvas.text((x1, max(0.0, y1 - 12)), text, fill="black", font=_font())


def _font() -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(11)
