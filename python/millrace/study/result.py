"""The result of a study, as printed by `--json`: metrics of each variant, and differences.

It is computed from the last detections of all finished runs and their validation annotations.
"""

from __future__ import annotations

import json
import math
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from .._command import Failure, counted, trainer
from .._runs import Run, at, read_run
from .bootstrap import ApDraws, bootstrap
from .noise import ALPHA, Noise, moments
from .plan import Study

DRAWS = 1000  # as in `trainer coco-eval --versus`
TYPES = {"bbox": "box", "segm": "mask"}
Json = dict[str, Any]


@dataclass
class Measured:
    """The evaluation of a finished run."""

    seed: int
    detections: Path
    stats: dict[str, float] = field(default_factory=dict)  # "bbox/AP"; without undefined values
    ap: dict[str, ApDraws] = field(default_factory=dict)  # by "bbox" and, if there are any, "segm"


def study_result(study: Study) -> Json:
    """Returns the result, with a sentence for each omission."""
    with TemporaryDirectory(prefix="millrace-study-") as scratch:
        return _result(study, Path(scratch))


def _result(study: Study, scratch: Path) -> Json:
    variants: list[Json] = []
    differences: list[Json] = []
    left_out: list[str] = []
    first: tuple[Path | None, list[Measured]] = (None, [])
    images = 0
    for variant in study.plan.variants():
        described: Json = {"name": variant.name, "seeds": [], "folders": [], "seconds": []}
        truth, seeds = None, []
        for one in study.runs:
            if one.variant != variant.name or one.state != "done":
                continue
            try:
                run = read_run(study.own_folder(one) or study.folder / one.folder)
                detections = run.newest_detections()
                if not detections:
                    raise LookupError
                truth = truth or truth_of(run, scratch / f"{len(variants)}.json")
                measured, count = measure(run, one.seed, detections, truth)
            except LookupError:
                left_out.append(
                    f"{one.title} has no detections; results = true in [callbacks.evaluate] "
                    "writes those of the split data.val"
                )
                continue
            except (Failure, OSError, ValueError) as problem:
                left_out.append(f"{one.title} cannot be evaluated: {problem}")
                continue
            seeds.append(measured)
            images = images or count
            described["seeds"].append(one.seed)
            described["folders"].append(str(run.folder))
            described["seconds"].append(run.trained_seconds())
        described["figures"] = figures(seeds)
        variants.append(described)
        if len(variants) == 1:
            first = truth, seeds
        elif seeds and first[1] and truth and first[0]:
            names = variant.name, variants[0]["name"]
            if same_truth(truth, first[0]):
                differences += [
                    {"variant": names[0], "against": names[1], **one}
                    for one in compare(seeds, first[1], first[0], images)
                ]
            else:
                left_out.append(
                    f"{names[0]} cannot be compared with {names[1]}; they were evaluated on other "
                    "images or classes"
                )
    left_out += [f"{one.title} failed: {one.why}" for one in study.runs if one.state == "failed"]
    return {
        "name": study.plan.name,
        "runs": len(study.runs),
        "done": study.count("done"),
        "failed": study.count("failed"),
        "maths_threads": study.plan.maths_threads,
        "images": images,
        "draws": DRAWS,
        "variants": variants,
        "differences": differences,
        "left_out": left_out,
    }


def truth_of(run: Run, part: Path) -> Path:
    """Returns the annotation file for a run's evaluation; for a subset of a file, writes it to
    `part`."""
    name, root = (at(run.config, "data", key) for key in ("val", "root"))
    if not name or not root:
        raise Failure("no validation split in the configuration (data.root, data.val)")
    started_in = Path(run.last_start().get("directory", ""))
    folder = started_in / root if (started_in / root).exists() else Path(root)
    file = folder / "annotations" / f"instances_{name}.json"
    if not file.is_file():
        raise Failure(f"annotation file '{file}' not found; restore the data set of the training")
    classes = at(run.config, "data", "classes")
    most = at(run.config, "callbacks", "evaluate", "images")
    if not classes and not most:
        return file
    data = json.loads(file.read_bytes())
    if classes:
        data["categories"] = [one for one in data["categories"] if one["name"] in classes]
    if most:
        data["images"] = sorted(data["images"], key=lambda one: int(one["id"]))[:most]
    kept = [{one["id"] for one in data[key]} for key in ("categories", "images")]
    data["annotations"] = [
        one
        for one in data["annotations"]
        if one["category_id"] in kept[0] and one["image_id"] in kept[1]
    ]
    part.write_text(json.dumps(data), "utf-8")
    return part


def same_truth(a: Path, b: Path) -> bool:
    """Returns whether two files have the same categories, images and objects."""
    if a.resolve() == b.resolve():
        return True

    def content(file: Path) -> list[list[tuple[Any, ...]]]:
        data = json.loads(file.read_bytes())
        keys = {
            "categories": ("id", "name"),
            "images": ("id", "file_name"),
            "annotations": ("image_id", "category_id", "bbox", "area", "iscrowd"),
        }
        return [sorted((tuple(one.get(key) for key in of) for one in data[name]), key=str)
                for name, of in keys.items()]  # fmt: skip

    return content(a) == content(b)


def measure(run: Run, seed: int, detections: Path, truth: Path) -> tuple[Measured, int]:
    """Returns a run's metrics and the number of evaluated images."""
    measured, images = Measured(seed, detections), 0
    for iou in TYPES:
        if iou == "segm" and not has_masks(run, detections):
            continue
        scored = coco_eval(truth, detections, iou, "--bootstrap", str(DRAWS))
        images = scored["images"]
        for name, value in zip(scored["stat_names"], scored["stats"]):
            if value >= 0:
                measured.stats[f"{iou}/{name}"] = value
        measured.ap[iou] = ApDraws(scored["stats"][0], scored["bootstrap"]["AP_by_draw"])
    return measured, images


def has_masks(run: Run, detections: Path) -> bool:
    """Returns whether a run's detections have masks; without detections, whether masks were
    scored."""
    with detections.open("rb") as file:
        begin = file.read(1 << 20)
    if not begin.strip(b"[] \n"):
        return any(name.endswith("segm/AP") for name in run.metrics.by_name)
    return b'"segmentation"' in begin


def coco_eval(truth: Path, detections: Path, iou: str, *more: str) -> Json:
    command = [trainer(), "coco-eval", "--gt", str(truth), "--dt", str(detections), "--iou", iou,
               "--style", "coco", "--json", *more]  # fmt: skip
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise Failure(done.stderr.strip().rpartition("trainer: error: ")[2])
    scored: Json = json.loads(done.stdout)
    return scored


def figures(seeds: Sequence[Measured]) -> Json:
    """Returns the metrics that all seeds have, from 0 to 1."""
    made = {}
    for name in seeds[0].stats if seeds else ():
        if not all(name in one.stats for one in seeds):
            continue
        values = [one.stats[name] for one in seeds]
        mean, sd = moments(values)
        half = Noise(sd).half_width(len(values)) if len(values) > 1 else math.nan
        made[name] = {
            "mean": mean,
            "sd": sd,
            "min": min(values),
            "max": max(values),
            "mean_low": max(mean - half, 0.0) if len(values) > 1 else math.nan,
            "mean_high": min(mean + half, 1.0) if len(values) > 1 else math.nan,
            "values": values,
        }
    return made


def compare(
    seeds: Sequence[Measured], first: Sequence[Measured], truth: Path, images: int
) -> list[Json]:
    """Compares a variant with the first one: boxes and, if both have them, masks."""
    others = {one.seed: one for one in first}
    made = []
    for iou in TYPES:
        pairs = [
            (one, others[one.seed])
            for one in seeds
            if one.seed in others and iou in one.ap and iou in others[one.seed].ap
        ]
        if not pairs or pairs[0][0].ap[iou].whole < 0:
            continue
        p = 1.0
        if len(pairs) == 1:  # only the choice of images causes variation
            one, other = pairs[0]
            versus = coco_eval(truth, one.detections, iou, "--versus", str(other.detections))
            p = versus["versus"]["p"]
        a, b = ([pair[side].ap[iou] for pair in pairs] for side in (0, 1))
        about = {"figure": f"{iou}/AP", "seeds": [one.seed for one, _ in pairs]}
        made.append({**about, **difference(a, b, images, p)})
    return made


def difference(
    variant: Sequence[ApDraws], first: Sequence[ApDraws], images: int, one_seed_p: float = 1
) -> Json:
    """Compares two variants by the AP of both for each seed, in the same order."""
    n = len(variant)
    by_seed = [one.whole - other.whole for one, other in zip(variant, first)]
    drawn = bootstrap(variant, first)
    mean, deviation = moments(by_seed)
    noise = Noise(deviation, drawn.images_deviation)
    low, high = drawn.interval
    p = drawn.p = one_seed_p if n == 1 else drawn.p
    detectable = needed = None
    if n > 1:
        half = noise.half_width(n)
        low, high, p = mean - half, mean + half, noise.p_of(mean, n)
        detectable = noise.detectable(n)
        needed = noise.seeds_needed(mean) if mean != 0 else None
    made = {
        "by_seed": by_seed,
        "difference": mean,
        "low": low,
        "high": high,
        "p": p,
        "real": p < ALPHA if n > 1 else None,
        "bootstrap": {**drawn.interval._asdict(), "p": drawn.p},
        "seeds_sd": noise.seeds,
        "images_sd": noise.images,
        "detectable": detectable,
        "seeds_needed": needed,
    }
    means = [moments([one.whole for one in side]).mean for side in (variant, first)]
    return {**made, "sentence": sentence(made, means, noise, images)}


def sentence(it: Json, means: Sequence[float], noise: Noise, images: int) -> str:
    """Returns "+0.52 AP (34.64 against 34.12) over 5 seeds, 95 % interval +0.11 .. +0.93, ..."."""
    seeds, size = counted(len(it["by_seed"]), "seed"), 100 * abs(it["difference"])
    p = "< 0.001" if it["p"] < 0.001 else f"= {it['p']:.3f}"
    text = (
        f"{100 * it['difference']:+.2f} AP ({100 * means[0]:.2f} against {100 * means[1]:.2f}) "
        f"over {seeds}, 95 % interval {100 * it['low']:+.2f} .. {100 * it['high']:+.2f}, p {p}: "
    )
    way = "better" if it["difference"] > 0 else "worse"
    if len(it["by_seed"]) == 1:
        verdict = f"{way} by more than the noise" if it["p"] < ALPHA else "within the noise"
        return text + (
            f"{verdict} of the choice of images. A single seed does not show the variation between "
            "trainings, which may be larger; train each variant with several seeds."
        )
    text += f"real, it is {way}. " if it["real"] else "within noise. "
    text += (
        f"{seeds} on these {counted(images, 'image')} can detect differences of "
        f"{100 * it['detectable']:.2f} AP or more (power 80 %, alpha 5 %)"
    )
    if size == 0:
        return f"{text}."
    if it["seeds_needed"]:
        return f"{text}; detecting {size:.2f} AP needs {counted(it['seeds_needed'], 'seed')}."
    more = noise.images_needed(it["difference"])
    times = f"{more:.1f}" if more < 10 else f"{more:.0f}"
    return (
        f"{text}; detecting {size:.2f} AP needs at least {times} times as many images, for any "
        "number of seeds."
    )
