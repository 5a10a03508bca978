// Student's t, intervals and power against tables, and against chance itself.
#include "millrace/study/seed_noise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/study/student_t.h"

namespace millrace::study {
namespace {

TEST(StudentT, IsThatOfTables) {
  EXPECT_NEAR(t_of_tail(.05, 1), 12.7062, 5e-5);
  EXPECT_NEAR(t_of_tail(.05, 4), 2.7764, 5e-5);
  EXPECT_NEAR(t_of_tail(.01, 9), 3.2498, 5e-5);
  EXPECT_NEAR(t_of_tail(.05, 1e6), normal_of_tail(.05), 1e-5);
  EXPECT_NEAR(normal_of_tail(.05), 1.959964, 1e-6);
  EXPECT_NEAR(beyond_t(2, 4), .116117, 1e-6);
  EXPECT_EQ(beyond_t(0, 3), 1);
}

TEST(SeedNoise, WithoutImagesTheIntervalAndPAreThoseOfTheTTest) {
  const std::vector<double> values = {.3, .5, .1, .4, .2};  // mean .3, deviation sqrt(.025)
  const auto [mean, deviation] = moments(values);
  EXPECT_NEAR(mean, .3, 1e-15);
  EXPECT_NEAR(deviation, std::sqrt(.025), 1e-15);
  EXPECT_NEAR(half_width({deviation, 0}, 5), 2.776445 * std::sqrt(.025 / 5), 1e-6);
  EXPECT_NEAR(p_of(mean, {deviation, 0}, 5), beyond_t(.3 / std::sqrt(.025 / 5), 4), 1e-9);
  EXPECT_TRUE(std::isnan(moments(std::vector<double>{1}).deviation));
}

TEST(SeedNoise, PIsBelowAlphaExactlyWhereTheIntervalLeavesOutZero) {
  for (const Noise noise : {Noise{1, 0}, Noise{1, .3}, Noise{.2, 1}, Noise{0, 1}})
    for (const std::size_t n : {2U, 3U, 10U}) {
      const double half = half_width(noise, n);
      EXPECT_LT(p_of(half * 1.001, noise, n), kAlpha);
      EXPECT_GT(p_of(half * .999, noise, n), kAlpha);
      EXPECT_NEAR(p_of(-half, noise, n), kAlpha, 1e-6);
    }
  EXPECT_EQ(p_of(0, {1, 1}, 5), 1);
  EXPECT_LT(p_of(.1, {0, 0}, 5), 1e-9);
}

// Sizes and powers of the paired t test by statsmodels 0.14, TTestPower.
TEST(SeedNoise, WithoutImagesThePowerIsThatOfTheTTest) {
  EXPECT_NEAR(power(.5, {1, 0}, 5), .140517, 1e-5);
  EXPECT_NEAR(power(2, {1, 0}, 5), .908885, 1e-5);
  EXPECT_NEAR(power(1, {1, 0}, 10), .803097, 1e-5);
  EXPECT_NEAR(power(.2, {1, 0}, 199), .801691, 1e-5);
  EXPECT_NEAR(detectable({1, 0}, 5), 1.681997, 1e-5);
  EXPECT_NEAR(detectable({1, 0}, 2), 11.54989, 1e-4);
  EXPECT_EQ(seeds_needed(.2, {1, 0}), 199);
  EXPECT_EQ(seeds_needed(.5, {1, 0}), 34);
  EXPECT_EQ(seeds_needed(1, {1, 0}), 10);
  EXPECT_EQ(seeds_needed(-1, {1, 0}), 10);
  EXPECT_EQ(seeds_needed(100, {1, 0}), 2);
}

TEST(SeedNoise, WhereTheImagesHideADifferenceNoNumberOfSeedsShowsIt) {
  EXPECT_EQ(seeds_needed(.5, {1, .3}), std::nullopt);
  EXPECT_GT(images_needed(.5, {1, .3}), 1);
  ASSERT_TRUE(seeds_needed(.5, {1, .15}));
  EXPECT_LT(images_needed(.5, {1, .15}), 1);
  const std::size_t n = *seeds_needed(.5, {1, .15});
  EXPECT_GE(power(.5, {1, .15}, n), kPower);
  EXPECT_LT(power(.5, {1, .15}, n - 1), kPower);
}

/// Of how many of many made-up studies the interval leaves out 0.
double share_of_real(double truth, const Noise& noise, std::size_t n) {
  constexpr int kStudies = 4000;
  int real = 0;
  for (int i = 0; i < kStudies; ++i) {
    Rng rng{17, static_cast<std::uint64_t>(i)};
    const double images = noise.images * rng.normal();
    std::vector<double> values;
    for (std::size_t s = 0; s < n; ++s)
      values.push_back(truth + images + noise.seeds * rng.normal());
    const auto [mean, deviation] = moments(values);
    real += std::abs(mean) > half_width({deviation, noise.images}, n);
  }
  return real / double{kStudies};
}

TEST(SeedNoise, NoDifferenceIsCalledRealAtMostAsOftenAsAlpha) {
  for (const std::size_t n : {2U, 5U, 10U})
    for (const double images : {0., .3, 1.}) {
      const double wrong = share_of_real(0, {1, images}, n);
      EXPECT_LT(wrong, kAlpha + .012) << n << " seeds, images " << images;
      EXPECT_GT(wrong, .01) << "no test at all";
    }
}

TEST(SeedNoise, DifferencesAreShownAsOftenAsThePowerSays) {
  for (const Noise noise : {Noise{1, 0}, Noise{1, .3}, Noise{1, 1}})
    for (const std::size_t n : {3U, 10U}) {
      const double least = detectable(noise, n);
      EXPECT_NEAR(share_of_real(least, noise, n), kPower, .025);
      EXPECT_NEAR(share_of_real(least / 2, noise, n), power(least / 2, noise, n), .025);
    }
}

}  // namespace
}  // namespace millrace::study
