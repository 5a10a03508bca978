"""Statistics of a mean over seeds: its random variation, and which differences are detectable."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05  # significance level of all tests; intervals have 95 %
POWER = 0.8  # power at which a difference counts as detectable

normal_below = NormalDist().cdf


def normal_of_tail(tail: float) -> float:
    """Returns the two-sided quantile of the normal distribution: 1.96 for .05."""
    return -NormalDist().inv_cdf(tail / 2)


def beyond_t(t: float, freedom: float) -> float:
    """Returns the two-sided tail probability of Student's t at `t`, with `freedom` degrees of
    freedom."""
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


@cache
def t_of_tail(tail: float, freedom: float) -> float:
    """Returns the t > 0 such that beyond_t(t, freedom) = `tail`."""
    high = 1.0
    while beyond_t(high, freedom) > tail and high < 1e150:
        high *= 2
    return bisected(0, high, lambda t: beyond_t(t, freedom) <= tail, 200)


def bisected(low: float, high: float, holds: Callable[[float], bool], halvings: int) -> float:
    """Returns the smallest value in low .. high that satisfies a monotone condition."""
    for _ in range(halvings):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Returns the regularized incomplete beta function."""
    if x <= 0 or x >= 1:
        return 0 if x <= 0 else 1
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        + a * math.log(x) + b * math.log1p(-x)
    )  # fmt: skip
    if x < (a + 1) / (a + b + 2):
        return front * _beta_fraction(a, b, x) / a
    return 1 - front * _beta_fraction(b, a, 1 - x) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Computes its continued fraction by Lentz's method (Numerical Recipes 6.4)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or 1e-300)
    result = d
    for m in range(1, 10001):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or 1e-300)
            c = 1 + term / c or 1e-300
            result *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return result


class Moments(NamedTuple):
    """Mean and standard deviation (n - 1) of values; the deviation of a single value is NaN."""

    mean: float
    deviation: float


def moments(values: Sequence[float]) -> Moments:
    n = len(values)
    mean = sum(value / n for value in values)
    if n < 2:
        return Moments(mean, math.nan)
    return Moments(mean, math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)))


@dataclass(frozen=True)
class Noise:
    """Two independent sources of variation of a mean over seeds, in the unit of the metric.

    With n seeds, the variance of the mean is seeds^2 / n + images^2.
    """

    seeds: float  # standard deviation of one seed's value, estimated from n seeds
    images: float = 0  # standard deviation of the mean due to the choice of images

    def half_width(self, n: int, alpha: float = ALPHA) -> float:
        """Returns half the width of the interval that contains the true mean with probability 1 -
        alpha.

        It is the root of (t seeds)^2 / n + (z images)^2, with t for n - 1 degrees of freedom and z
        of the normal distribution. Its coverage is at least nominal (see docs/study.md).
        """
        return self._half_width(n, t_of_tail(alpha, n - 1), normal_of_tail(alpha))

    def _half_width(self, n: int, t: float, z: float, estimate: float = 1) -> float:
        return math.hypot(t * estimate * self.seeds / math.sqrt(n), z * self.images)

    def p_of(self, mean: float, n: int) -> float:
        """Returns the smallest alpha for which the interval around `mean` excludes 0."""
        if mean == 0:
            return 1
        return bisected(0, 1, lambda alpha: self.half_width(n, alpha) < abs(mean), 60)

    def power(self, truth: float, n: int) -> float:
        """Returns the probability that the interval of n new seeds excludes 0 if the true mean is
        `truth`.

        Exact for normal noise; without image noise, the power of the paired t-test.
        """
        freedom = n - 1
        t, z = t_of_tail(ALPHA, freedom), normal_of_tail(ALPHA)
        spread = math.hypot(self.seeds / math.sqrt(n), self.images)
        if spread == 0:
            return 0 if truth == 0 else 1
        # Integrates over u, the sample deviation divided by the true one, chi / sqrt(freedom), with
        # Simpson's rule.
        half = freedom / 2
        log_front = math.log(2) + half * math.log(half) - math.lgamma(half)

        def density(u: float) -> float:
            if u == 0:
                return 0 if freedom > 1 else math.exp(log_front)
            return math.exp(log_front + (freedom - 1) * math.log(u) - freedom * u * u / 2)

        def shown(u: float) -> float:
            width = self._half_width(n, t, z, u)
            return normal_below((truth - width) / spread) + normal_below((-truth - width) / spread)

        parts = 1000
        reach = 8 / math.sqrt(2 * freedom)
        low = max(0.0, 1 - reach)
        step = (1 + reach - low) / parts
        total = 0.0
        for i in range(parts + 1):
            u = low + i * step
            total += (1 if i in (0, parts) else 4 if i % 2 else 2) * density(u) * shown(u)
        return min(1.0, total * step / 3)

    def detectable(self, n: int) -> float:
        """Returns the smallest true mean that n seeds detect with POWER."""
        high = self.half_width(n)
        if high == 0:
            return 0
        while self.power(high, n) < POWER:
            high *= 2
        return bisected(0, high, lambda mean: self.power(mean, n) >= POWER, 40)

    def seeds_needed(self, truth: float) -> int | None:
        """Returns the smallest number of seeds, at least 2, that detects `truth` with POWER; None
        if over 100,000."""
        most = 100_000
        high = 2
        while high < most and self.power(truth, high) < POWER:
            high = min(2 * high, most)
        if self.power(truth, high) < POWER:
            return None
        low = high // 2
        while high > 2 and low + 1 < high:
            middle = (low + high) // 2
            if self.power(truth, middle) >= POWER:
                high = middle
            else:
                low = middle
        return high

    def images_needed(self, truth: float) -> float:
        """Returns by what factor the number of images must grow so that an unlimited number of
        seeds detects `truth`."""
        shown = normal_of_tail(ALPHA) + normal_of_tail(2 * (1 - POWER))
        return (shown * self.images / truth) ** 2
