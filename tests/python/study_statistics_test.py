"""Compares Student's t, intervals and power with tables and simulations."""

import math
import random

import pytest

from millrace.study.bootstrap import ApDraws, bootstrap, random_below
from millrace.study.noise import (
    ALPHA, POWER, Noise, beyond_t, moments, normal_of_tail, t_of_tail,
)  # fmt: skip
from millrace.study.result import difference


def test_t_matches_tables() -> None:
    assert t_of_tail(0.05, 1) == pytest.approx(12.7062, abs=5e-5)
    assert t_of_tail(0.05, 4) == pytest.approx(2.7764, abs=5e-5)
    assert t_of_tail(0.01, 9) == pytest.approx(3.2498, abs=5e-5)
    assert t_of_tail(0.05, 1e6) == pytest.approx(normal_of_tail(0.05), abs=1e-5)
    assert normal_of_tail(0.05) == pytest.approx(1.959964, abs=1e-6)
    assert beyond_t(2, 4) == pytest.approx(0.116117, abs=1e-6)
    assert beyond_t(0, 3) == 1


def test_interval_and_p_match_t_test() -> None:
    mean, deviation = moments([0.3, 0.5, 0.1, 0.4, 0.2])
    assert mean == pytest.approx(0.3)
    assert deviation == pytest.approx(math.sqrt(0.025))
    noise, error = Noise(deviation), math.sqrt(0.025 / 5)
    assert noise.half_width(5) == pytest.approx(2.776445 * error, abs=1e-6)
    assert noise.p_of(mean, 5) == pytest.approx(beyond_t(0.3 / error, 4), abs=1e-9)
    assert math.isnan(moments([1]).deviation)


@pytest.mark.parametrize("noise", [Noise(1), Noise(1, 0.3), Noise(0.2, 1), Noise(0, 1)])
@pytest.mark.parametrize("n", [2, 3, 10])
def test_p_agrees_with_interval(noise: Noise, n: int) -> None:
    half = noise.half_width(n)
    assert noise.p_of(half * 1.001, n) < ALPHA < noise.p_of(half * 0.999, n)
    assert noise.p_of(-half, n) == pytest.approx(ALPHA, abs=1e-6)
    assert noise.p_of(0, n) == 1


def test_p_without_noise_is_near_zero() -> None:
    assert Noise(0).p_of(0.1, 2) < 1e-9


def test_power_matches_statsmodels() -> None:
    """Sizes and powers of the paired t-test, from TTestPower of statsmodels 0.14."""
    noise = Noise(1)
    for truth, n, power in [(0.5, 5, 0.140517), (2, 5, 0.908885), (1, 10, 0.803097),
                            (0.2, 199, 0.801691)]:  # fmt: skip
        assert noise.power(truth, n) == pytest.approx(power, abs=1e-5)
    assert noise.detectable(5) == pytest.approx(1.681997, abs=1e-5)
    assert noise.detectable(2) == pytest.approx(11.54989, abs=1e-4)
    sizes = {0.2: 199, 0.5: 34, 1: 10, -1: 10, 100: 2}
    assert {size: noise.seeds_needed(size) for size in sizes} == sizes


def test_image_noise_limits_power() -> None:
    assert Noise(1, 0.3).seeds_needed(0.5) is None
    assert Noise(1, 0.3).images_needed(0.5) > 1
    enough = Noise(1, 0.15)
    n = enough.seeds_needed(0.5)
    assert n is not None
    assert enough.images_needed(0.5) < 1
    assert enough.power(0.5, n) >= POWER > enough.power(0.5, n - 1)


def share_of_real(truth: float, noise: Noise, n: int) -> float:
    """Returns the share of 4,000 simulated studies whose interval excludes 0."""
    chance, real = random.Random(17), 0
    for _ in range(4000):
        common = truth + noise.images * chance.gauss(0, 1)
        mean, sd = moments([common + noise.seeds * chance.gauss(0, 1) for _ in range(n)])
        real += abs(mean) > Noise(sd, noise.images).half_width(n)
    return real / 4000


@pytest.mark.parametrize("n", [2, 5, 10])
@pytest.mark.parametrize("images", [0, 0.3, 1])
def test_false_positive_rate_is_below_alpha(n: int, images: float) -> None:
    assert 0.01 < share_of_real(0, Noise(1, images), n) < ALPHA + 0.012


@pytest.mark.parametrize("noise", [Noise(1), Noise(1, 0.3), Noise(1, 1)])
@pytest.mark.parametrize("n", [3, 10])
def test_detection_rate_matches_power(noise: Noise, n: int) -> None:
    least = noise.detectable(n)
    assert share_of_real(least, noise, n) == pytest.approx(POWER, abs=0.025)
    assert share_of_real(least / 2, noise, n) == pytest.approx(noise.power(least / 2, n), abs=0.025)


def test_random_numbers_match_program() -> None:
    """Expected numbers recorded from base/random.h: Rng{2022, 3}, below(5) and below(2^64 - 1)."""
    few, words = random_below(5, 2022, 3), random_below(2**64 - 1, 2022, 3)
    assert [next(few) for _ in range(8)] == [0, 1, 0, 0, 2, 1, 2, 4]
    assert next(words) == 3649759788650780373


def trainings(ap: float, seed: int, n: int) -> list[ApDraws]:
    """Simulates the AP of several runs: an effect of the images, which all runs share, and an
    effect of each seed."""
    made = []
    for training in range(n):
        own, images = random.Random(f"{ap} {seed + training}"), random.Random(1)
        whole = ap + 0.01 * own.gauss(0, 1)
        made.append(ApDraws(whole, [whole + 0.01 * images.gauss(0, 1) for _ in range(300)]))
    return made


def test_equal_results_do_not_differ() -> None:
    same = difference(trainings(0.6, 1, 3), trainings(0.6, 1, 3), 60)
    assert (same["difference"], same["low"], same["high"]) == (0, 0, 0)
    assert same["p"] == same["bootstrap"]["p"] == 1
    assert not same["real"]


def test_detects_large_difference_either_way() -> None:
    better = difference(trainings(0.9, 1, 5), trainings(0.4, 1, 5), 60)
    worse = difference(trainings(0.4, 1, 5), trainings(0.9, 1, 5), 60)
    assert better["real"]
    assert better["bootstrap"]["p"] < ALPHA
    assert 0 < better["low"] < better["difference"] < better["high"]
    assert worse["low"] == pytest.approx(-better["high"])
    assert worse["p"] == pytest.approx(better["p"])
    assert "better" in better["sentence"]
    assert "worse" in worse["sentence"]


def test_small_difference_needs_more_seeds() -> None:
    small = difference(trainings(0.601, 1, 3), trainings(0.6, 11, 3), 200)
    assert not small["real"]
    assert small["detectable"] > abs(small["difference"])
    assert small["seeds_needed"] is None or small["seeds_needed"] > 3
    assert "3 seeds on these 200 images" in small["sentence"]


def test_one_seed_measures_no_training_noise() -> None:
    one = difference(trainings(0.6, 1, 1), trainings(0.5, 2, 1), 60, 0.25)
    assert one["p"] == one["bootstrap"]["p"] == 0.25
    assert one["real"] is one["detectable"] is one["seeds_needed"] is None
    assert math.isnan(one["seeds_sd"])


def test_counts_image_noise_once() -> None:
    chance, draws = random.Random(31), [[0.0] * 4000 for _ in range(5)]
    for i in range(4000):
        shared = 0.01 * chance.gauss(0, 1)
        for one in draws:
            one[i] = 0.5 + shared + 0.02 * chance.gauss(0, 1)
    none = [ApDraws(0, [0.0] * 4000)] * 5
    drawn = bootstrap([ApDraws(0.5, one) for one in draws], none)
    assert drawn.images_deviation == pytest.approx(0.01, abs=0.001)


def test_skips_draws_without_objects() -> None:
    a, b = ApDraws(0.5, [-1, 0.5, 0.4]), ApDraws(0.4, [-1, 0.4, 0.3])
    drawn = bootstrap([a, a], [b, b])
    assert drawn.interval.low == pytest.approx(0.1)
    assert math.isnan(bootstrap([ApDraws(-1, [-1])], [ApDraws(-1, [-1])]).interval.low)
