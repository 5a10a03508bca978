"""MMDetection's pipelines: lists of image transforms."""

from __future__ import annotations

from dataclasses import dataclass, field

from millrace.migrate.mmdetection import table
from millrace.migrate.shared_rules import Stage, set_crop_size, stage
from millrace.migrate.toml import Setting
from millrace.migrate.translation import Found, Translation, number
from millrace.migrate.values import plain

_UNKNOWN = "no counterpart"
_USUAL = "as in every pipeline"
_RATIO = "images keep their aspect ratio"


def read_pipelines(t: Translation, train: str, test: str) -> str:
    """Translates the training and evaluation pipelines into the sizes and flips of [data], or into
    [[data.stages]] if these do not suffice. Returns the path of `Normalize` (2.x), or ""."""
    pipelines = _Pipelines(t)
    for path, kind in pipelines.steps(train):
        pipelines.read_training(path, kind)
    if pipelines.needs_stages:
        pipelines.put_stages()
    for path, kind in pipelines.steps(test):
        pipelines.read_testing(path, kind)
    return pipelines.normalize


@dataclass
class _Scales:
    """"scale" in 3.x, "img_scale" in 2.x: pairs of long and short side, in either order."""

    origin: Found
    shorts: list[float] = field(default_factory=list)
    longs: list[float] = field(default_factory=list)


class _Pipelines:
    def __init__(self, t: Translation) -> None:
        self.normalize = ""
        self.needs_stages = False
        self._t = t
        self._order: list[str] = []  # order of the steps that are stages here
        self._jitter, self._range = Found(""), Found("")
        self._crop, self._flip = Found(""), Found("")
        self._crop_kind = ""
        self._is_vertical = False
        self._train = _Scales(Found(""))

    def steps(self, path: str) -> list[tuple[str, str]]:
        """Returns the path and type of each step."""
        found = self._t.look(path)
        steps = []
        for index in range(len(found.items()) if found else 0):
            at = f"{path}.{index}"
            kind = self._t.read(f"{at}.type")
            if kind:
                steps.append((at, kind.text()))
            else:
                self._t.leave_out(self._t.look(at), "the step has no type")
        return steps

    def read_training(self, path: str, kind: str) -> None:
        if kind in table.PLAIN_STEPS:
            self._t.read(path)
        elif kind == "LoadAnnotations":
            self._read_annotations(path)
        elif kind in ("Resize", "RandomChoiceResize", "RandomResize"):
            self._read_resize(path, kind)
        elif kind == "RandomFlip":
            self._read_flip(path)
        elif kind == "RandomCrop":
            self._read_crop(path)
        elif kind == "Normalize":
            self.normalize = path
        elif kind == "Pad":
            self._read_pad(path)
        else:
            reason = "use [[data.stages]]; `trainer list` shows the stages"
            self._t.leave_out(self._t.read(path), reason)

    def _read_keys(self, path: str, *keys: str) -> list[Found]:
        return [self._t.read(f"{path}.{key}") for key in keys]

    def _read_annotations(self, path: str) -> None:
        masks, bitmaps, *_ = self._read_keys(
            path, "with_mask", "poly2mask", "with_bbox", "backend_args"
        )
        if masks and masks.flag() and not (bitmaps and not bitmaps.flag()):
            self._t.leave_out(
                bitmaps or masks,
                "polygons are kept, as with poly2mask=False; MMDetection resizes bitmaps",
            )
        self._t.leave_out_rest(path, _UNKNOWN)

    def _scales_of(self, path: str) -> _Scales:
        found = self._t.read_any(f"{path}.scale", f"{path}.scales", f"{path}.img_scale")
        scales = _Scales(found)
        if not found:
            return scales
        is_list = found.is_list() and found.items() and found.items()[0].is_list()
        for pair in found.items() if is_list else [found]:
            sides = pair.reals()
            if len(sides) != 2:
                found.fail("expected two sides, such as (1333, 800)")
            scales.longs.append(max(sides))
            scales.shorts.append(min(sides))
        return scales

    def _read_resize(self, path: str, kind: str) -> None:
        t = self._t
        scales = self._scales_of(path)
        ratios, mode, *_ = self._read_keys(
            path, "ratio_range", "multiscale_mode", "resize_type", "backend"
        )
        t.expect(f"{path}.keep_ratio", True, _RATIO)
        t.leave_out_rest(path, _UNKNOWN)
        if not scales.origin:
            return
        if ratios:
            self._jitter, self._range = scales.origin, ratios
            self.needs_stages = True
            self._order.append("jitter")
            return
        if len(set(scales.longs)) > 1:
            t.leave_out(scales.origin, "the longer side has one limit; the first is used")
        t.put("data.short_side", scales.shorts, scales.origin)
        t.put("data.max_side", scales.longs[0], scales.origin)
        # 2.x chooses from a range unless it is configured to choose among values.
        chooses = kind == "Resize" and not (mode and mode.text() == "value")
        if len(scales.shorts) == 2 and (kind == "RandomResize" or chooses):
            t.put("data.short_side_range", True, mode or scales.origin)
        self._train = scales
        self._order.append("resize_shortest_edge")

    def _read_flip(self, path: str) -> None:
        t = self._t
        chance = t.read_any(f"{path}.prob", f"{path}.flip_ratio")
        direction = t.read(f"{path}.direction")
        t.leave_out_rest(path, _UNKNOWN)
        if chance:
            t.put("data.flip", chance.real(), chance)
        if direction:
            self._flip = direction
            if direction.need().data == "vertical":
                self._is_vertical = self.needs_stages = True
            elif direction.need().data != "horizontal":
                t.leave_out(
                    direction, "a stage flip is horizontal or vertical; use two for both"
                )
        self._order.append("flip")

    def _read_crop(self, path: str) -> None:
        kind, size, *_ = self._read_keys(
            path,
            "crop_type",
            "crop_size",
            "recompute_bbox",
            "allow_negative_crop",
            "bbox_clip_border",
        )
        self._t.leave_out_rest(path, _UNKNOWN)
        if size:
            self._crop = size
            self._crop_kind = kind.text() if kind else "absolute"
            self.needs_stages = True
            self._order.append("crop")

    def _read_pad(self, path: str) -> None:
        divisor, size, _ = self._read_keys(path, "size_divisor", "size", "pad_val")
        if divisor:
            self._t.put("data.divisor", divisor.real(), divisor)
        if size and len(size.reals()) != 2:
            size.fail("expected two sides")
        self._t.leave_out_rest(path, _UNKNOWN)

    def put_stages(self) -> None:
        """Writes the stages in order. A jitter followed by a crop of the same size is
        large_scale_jitter."""
        stages = [stage("read", _USUAL), stage("decode", _USUAL)]
        for kind in self._order:
            if kind == "jitter":
                stages.append(self._jitter_stage())
            elif kind == "crop":
                if not self._jitter:
                    stages.append(self._crop_stage())
            elif kind == "flip" and self._is_vertical:
                origin = self._flip.origin()
                stages.append(stage("flip", origin) | {"direction": Setting("vertical", origin)})
            else:
                stages.append(stage(kind, _USUAL))
        stages += [stage("group_by_aspect_ratio", _USUAL), stage("pad", _USUAL)]
        self._t.put("data.stages", stages, self._jitter or self._crop or self._flip)

    def _jitter_stage(self) -> Stage:
        shares, sides = self._range.reals(), self._jitter.reals()
        if len(shares) != 2:
            self._range.fail("expected two factors")
        if not self._crop or self._crop.reals() != sides:
            self._t.leave_out(
                self._range, "the result is cropped or padded to a fixed size"
            )
        shared, sized = self._range.origin(), self._jitter.origin()
        return stage("large_scale_jitter", sized) | {
            "min_scale": Setting(number(shares[0]), shared),
            "max_scale": Setting(number(shares[1]), shared),
            "width": Setting(number(sides[0]), sized),
            "height": Setting(number(sides[1]), sized),
        }

    def _crop_stage(self) -> Stage:
        sides, origin = self._crop.reals(), self._crop.origin()
        if len(sides) != 2:
            self._crop.fail("expected two sides")
        table_ = stage("random_crop", origin) | {"crop_type": Setting(self._crop_kind, origin)}
        set_crop_size(table_, self._crop_kind, sides, origin)
        return table_

    def read_testing(self, path: str, kind: str) -> None:
        if kind == "MultiScaleFlipAug":
            self._read_test_views(path)
        elif kind == "Resize":
            self._put_test_sizes(self._scales_of(path), path)
        else:
            self._t.read(path)  # loading, normalisation and packing as in training

    def _put_test_sizes(self, scales: _Scales, path: str) -> None:
        self._t.expect(f"{path}.keep_ratio", True, _RATIO)
        if not scales.origin:
            return
        if self._train.shorts != scales.shorts:
            self._t.put("data.test_short_side", scales.shorts[0], scales.origin)
        if self._train.longs[:1] != scales.longs[:1]:
            self._t.put("data.test_max_side", scales.longs[0], scales.origin)

    def _read_test_views(self, path: str) -> None:
        """Reads test-time augmentation in 2.x: one or several scales, flipped or not."""
        scales = self._scales_of(path)
        flip, *_ = self._read_keys(path, "flip", "transforms", "flip_direction")
        if flip and flip.flag():
            self._t.put("model.test.aug_flip", True, flip)
        if len(scales.shorts) > 1:
            most = max(scales.shorts)
            if most <= 0:
                scales.origin.fail("sizes must be above 0")
            shares = [one / most for one in scales.shorts]
            how = f"relative to {plain(most)}"
            self._t.put("model.test.aug_scales", shares, scales.origin, how)
            scales = _Scales(scales.origin, [most], [max(scales.longs)])
        self._put_test_sizes(scales, path)
