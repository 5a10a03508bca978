"""Rules that recipes of several code bases lead to."""

from __future__ import annotations

import math
from dataclasses import dataclass

from millrace.migrate.toml import Setting
from millrace.migrate.translation import Found, Translation, number
from millrace.migrate.values import plain

NO_LOSS_WEIGHTS = "losses are added without weights"

COCO_TRAIN2017 = 118287  # images: all, and those with an object
COCO_TRAIN2017_WITH_OBJECTS = 117266

Stage = dict[str, Setting]


@dataclass
class EpochLength:
    """The length of an epoch, for recipes that count in steps."""

    images_per_step: float
    images: int | None  # of the training split; None: nobody has said it

    def epochs(self, steps: float, origin: Found) -> float:
        """So many steps as epochs. RecipeError naming `origin` if nobody has said `images`."""
        if self.images is None:
            origin.fail(
                "how many epochs are that? Say how many images of the training split have an "
                "object: --images N"
            )
        return rounded_epochs(steps * self.images_per_step / self.images)

    def how(self) -> str:
        """What `epochs` computes, after the number of steps: "x 16 images / 117266"."""
        if self.images is None:
            return ""
        return f"x {plain(self.images_per_step)} images / {self.images}"


def rounded_epochs(epochs: float) -> float:
    """As many decimals as tell single steps apart: 12.2798."""
    return math.floor(epochs * 1e4 + 0.5) / 1e4 if math.isfinite(epochs) else epochs


def put_anchor_sizes(
    t: Translation, levels: list[list[float]], origin: Found, how: str = ""
) -> None:
    """Sizes of anchors, level by level: n sizes of a level must be size x 2^(i/n)."""
    if len(levels) != 5:
        origin.fail(f"the pyramid has five levels, here are sizes for {len(levels)}")
    scales = len(levels[0])
    for level in levels:
        wanted = [level[0] * 2 ** (i / scales) for i in range(scales)] if level else []
        if len(level) != scales or scales == 0 or not all(map(_near, level, wanted)):
            origin.fail(
                "a level has one size, or several evenly within an octave: size x 2^(i/n)"
            )
    t.put("model.anchors.sizes", [level[0] for level in levels], origin, how)
    t.put("model.anchors.scales_per_octave", scales, origin)


def put_repeat_factor(t: Translation, threshold: Found, origin: Found) -> None:
    """Images that are repeated by the frequency of their classes (Gupta et al., LVIS, 2019)."""
    where = origin.origin()
    coco = stage("coco", where)
    repeat = stage("repeat_factor", where)
    repeat["of"] = Setting(["coco"], where)
    repeat["threshold"] = Setting(number(threshold.real()), threshold.origin())
    t.put("data.sources", [coco, repeat], origin)


def stage(kind: str, origin: str) -> Stage:
    """A table that has its type only."""
    return {"type": Setting(kind, origin)}


def set_crop_size(table: Stage, kind: str, sides: list[float], origin: str) -> None:
    """The size of a stage random_crop. `sides`: as theirs have them, (height, width) but for the
    range of absolute_range."""
    ordered = sides if kind == "absolute_range" else sides[::-1]
    table["size"] = Setting([number(one) for one in ordered], origin)


def _near(a: float, b: float) -> bool:
    return b != 0 and abs(a / b - 1) < 2e-3
