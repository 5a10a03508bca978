"""Rules shared by the recipes of several code bases."""

from __future__ import annotations

import math
from dataclasses import dataclass

from millrace.migrate.toml import Setting
from millrace.migrate.translation import Found, Translation, number
from millrace.migrate.values import plain

NO_LOSS_WEIGHTS = "losses have no weights here"

COCO_TRAIN2017 = 118287  # number of images: all images, and images with an object
COCO_TRAIN2017_WITH_OBJECTS = 117266

Stage = dict[str, Setting]


@dataclass
class EpochLength:
    """The length of an epoch, for recipes that count steps."""

    images_per_step: float
    images: int | None  # of the training split; None if unknown

    def epochs(self, steps: float, origin: Found) -> float:
        """Converts steps to epochs. Raises RecipeError naming `origin` if `images` is unknown."""
        if self.images is None:
            origin.fail(
                "cannot convert iterations to epochs; set the number of training images with an "
                "object by --images N"
            )
        return rounded_epochs(steps * self.images_per_step / self.images)

    def how(self) -> str:
        """Returns the arithmetic of `epochs`, after the number of steps: "x 16 images / 117266"."""
        if self.images is None:
            return ""
        return f"x {plain(self.images_per_step)} images / {self.images}"


def rounded_epochs(epochs: float) -> float:
    """Rounds to four decimals, so that single steps remain distinct: 12.2798."""
    return math.floor(epochs * 1e4 + 0.5) / 1e4 if math.isfinite(epochs) else epochs


def put_anchor_sizes(
    t: Translation, levels: list[list[float]], origin: Found, how: str = ""
) -> None:
    """Sets the anchor sizes of each level; the n sizes of a level must be size x 2^(i/n)."""
    if len(levels) != 5:
        origin.fail(f"expected sizes for the five levels of the pyramid, got {len(levels)}")
    scales = len(levels[0])
    for level in levels:
        wanted = [level[0] * 2 ** (i / scales) for i in range(scales)] if level else []
        if len(level) != scales or scales == 0 or not all(map(_near, level, wanted)):
            origin.fail(
                "expected one size per level, or n sizes evenly within an octave: size x 2^(i/n)"
            )
    t.put("model.anchors.sizes", [level[0] for level in levels], origin, how)
    t.put("model.anchors.scales_per_octave", scales, origin)


def put_repeat_factor(t: Translation, threshold: Found, origin: Found) -> None:
    """Repeats images by the frequency of their classes (Gupta et al., LVIS, 2019)."""
    where = origin.origin()
    coco = stage("coco", where)
    repeat = stage("repeat_factor", where)
    repeat["of"] = Setting(["coco"], where)
    repeat["threshold"] = Setting(number(threshold.real()), threshold.origin())
    t.put("data.sources", [coco, repeat], origin)


def stage(kind: str, origin: str) -> Stage:
    """Returns a table that contains only the type."""
    return {"type": Setting(kind, origin)}


def set_crop_size(table: Stage, kind: str, sides: list[float], origin: str) -> None:
    """Sets the size of a random_crop stage. `sides` are in the recipe's order: (height, width),
    except for the range of absolute_range."""
    ordered = sides if kind == "absolute_range" else sides[::-1]
    table["size"] = Setting([number(one) for one in ordered], origin)


def _near(a: float, b: float) -> bool:
    return b != 0 and abs(a / b - 1) < 2e-3
