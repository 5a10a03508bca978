"""Bootstrap of AP over both the seeds and the images of training runs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .noise import moments

WORD = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
SEED_DRAWS = 2022  # name of the random stream, different from the evaluator's


class ApDraws(NamedTuple):
    """The AP of one run over all images, and over each draw of them; -1 without objects."""

    whole: float
    draws: Sequence[float]


class Interval(NamedTuple):
    low: float
    high: float


@dataclass
class SeedBootstrap:
    """The mean difference over seeds."""

    interval: Interval
    # Share of draws that deviate from the mean by at least the mean's size; the mean counts as a
    # draw.
    p: float = 1
    # Standard deviation of the mean over these seeds due to the choice of images. The effect of
    # images on single seeds is excluded, since the deviation between seeds already contains it.
    images_deviation: float = 0


def bootstrap(a: Sequence[ApDraws], b: Sequence[ApDraws]) -> SeedBootstrap:
    """Bootstraps a - b, seed by seed.

    Draw i uses the images of draw i of every run, and n seeds drawn with replacement from the n
    seeds. With one seed, this is the bootstrap over images.
    """
    seeds = len(a)
    value = moments([one.whole - other.whole for one, other in zip(a, b)]).mean
    drawn: list[float] = []  # of seeds and images
    of_all: list[float] = []  # per draw of images: the mean over all seeds
    apart: list[list[float]] = [[] for _ in a]  # per draw of images: each seed minus that mean
    for i, first in enumerate(a[0].draws):
        if first < 0:
            continue  # no objects, in the other runs too
        each = [one.draws[i] - other.draws[i] for one, other in zip(a, b)]
        picks = random_below(seeds, SEED_DRAWS, i)
        drawn.append(moments([each[next(picks)] for _ in a]).mean)
        of_all.append(moments(each).mean)
        for rest, one in zip(apart, each):
            rest.append(one - of_all[-1])
    if not drawn:
        return SeedBootstrap(Interval(math.nan, math.nan))
    images = variance(of_all)
    if seeds > 1:  # variance of single seeds due to images; the mean over n seeds has 1 / n of it
        images -= sum(variance(one) for one in apart) / (seeds - 1) / seeds
    as_far = 1 + sum(abs(draw - value) >= abs(value) - 1e-12 for draw in drawn)
    return SeedBootstrap(
        basic_interval(value, drawn), as_far / (len(drawn) + 1), math.sqrt(max(0.0, images))
    )


def variance(values: Sequence[float]) -> float:
    deviation = moments(values).deviation
    return 0 if math.isnan(deviation) else deviation * deviation


def basic_interval(value: float, draws: Sequence[float]) -> Interval:
    """Returns the 95 % basic bootstrap interval: percentiles of the draws, reflected at the
    value."""
    ordered = sorted(draws)

    def percentile(part: float) -> float:
        at = part * (len(ordered) - 1)
        below = int(at)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (at - below) * (ordered[above] - ordered[below])

    return Interval(2 * value - percentile(0.975), 2 * value - percentile(0.025))


def random_below(n: int, *name: int) -> Iterator[int]:
    """Yields integers in [0, n): Millrace's counter-based random numbers for a name
    (base/random.h)."""
    key = 0
    for part in name:
        key = _mix(key + STEP + part)
    counter = 0
    while True:
        counter += 1
        yield (_mix(key + counter * STEP) * n) >> 64


def _mix(z: int) -> int:
    """The splitmix64 finaliser."""
    z &= WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)
