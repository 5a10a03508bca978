// Made-up detectors: what their seeds and images say of the difference between them.
#include "millrace/study/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <cmath>

#include "tests/coco/result_sets.h"

namespace millrace::study {
namespace {

using coco::Detections;
using coco::Matches;
using coco::ResultSet;
using ::testing::HasSubstr;

constexpr std::size_t kDraws = 200;

/// Images with two objects each, and detectors that find each with some probability.
class MadeUp {
 public:
  explicit MadeUp(std::uint64_t images_seed, int images = 60) : set_(images, 1), images_(images) {
    Rng rng{images_seed};
    for (int i = 1; i <= images; ++i)
      for (const double y : {10., 150.}) {
        set_.object(i, 1, {10, y, 80, 80});
        hard_.push_back(rng.uniform());
      }
    truth_ = set_.data();
  }

  /// Detections of a training with this seed: hard objects are found less often.
  std::vector<coco::Detection> found(double quality, std::uint64_t seed) const {
    ResultSet all(images_, 1);
    Rng rng{23, seed, static_cast<std::uint64_t>(quality * 1e6)};
    const double own = quality + .03 * rng.normal();  // of this training
    std::size_t object = 0;
    for (int i = 1; i <= images_; ++i)
      for (const double y : {10., 150.}) {
        if (rng.chance(own * (1.3 - .6 * hard_[object++])))
          all.detection(i, 1, {10 + rng.uniform(0, 8), y, 80, 80}, rng.uniform());
        if (rng.chance(.2)) all.detection(i, 1, {200, y, 60, 60}, rng.uniform());
      }
    return all.found;
  }

  Matches matched(const std::vector<coco::Detection>& found, const coco::Plan& plan) const {
    return coco::match(plan, Detections(found), {});
  }

  ApDraws draws(double quality, std::uint64_t seed) const {
    const coco::Plan plan(*truth_, {});
    const auto matches = matched(found(quality, seed), plan);
    const Matches* one[] = {&matches};
    return ap_draws(coco::resample(coco::WeightedAp(plan, one), truth_->images.size(), kDraws));
  }

  std::vector<ApDraws> trainings(double quality, std::uint64_t first_seed, std::size_t n) const {
    std::vector<ApDraws> all;
    for (std::size_t s = 0; s < n; ++s) all.push_back(draws(quality, first_seed + s));
    return all;
  }

  const coco::Dataset& truth() const { return *truth_; }

 private:
  ResultSet set_;
  int images_;
  std::vector<double> hard_;  // of each object
  std::shared_ptr<const coco::Dataset> truth_;
};

TEST(Difference, OfOneSeedIsThatOfCocoEval) {
  const MadeUp made(1);
  const auto one = difference_of(made.trainings(.6, 1, 1), made.trainings(.5, 2, 1), .25);
  const coco::Plan plan(made.truth(), {});
  const auto a = made.matched(made.found(.6, 1), plan), b = made.matched(made.found(.5, 2), plan);
  const Matches* alone[] = {&a};
  const auto versus = coco::compare(
      plan, a, coco::resample(coco::WeightedAp(plan, alone), made.truth().images.size(), kDraws),
      b);
  EXPECT_EQ(one.interval.value, versus.difference.ap.value);
  EXPECT_EQ(one.interval.low, versus.difference.ap.low);
  EXPECT_EQ(one.interval.high, versus.difference.ap.high);
  EXPECT_EQ(one.p, .25) << "what the caller measured";
  EXPECT_THAT(sentence(one, 60), HasSubstr("One seed says nothing"));
}

TEST(Difference, OfTheSameResultsIsNone) {
  const MadeUp made(2);
  const auto same = difference_of(made.trainings(.6, 1, 3), made.trainings(.6, 1, 3));
  EXPECT_EQ(same.interval.value, 0);
  EXPECT_EQ(same.interval.low, 0);
  EXPECT_EQ(same.interval.high, 0);
  EXPECT_EQ(same.p, 1);
  EXPECT_EQ(same.bootstrap_p, 1);
  EXPECT_FALSE(same.is_real());
}

// Studies of two variants that are the same but for their seeds: p is even over 0 .. 1.
TEST(Difference, WithoutOneTheIntervalHoldsZeroAndPIsEven) {
  constexpr int kStudies = 200;
  int outside = 0, high = 0;
  for (int i = 0; i < kStudies; ++i) {
    const MadeUp made(100 + static_cast<std::uint64_t>(i), 40);
    const auto seed = static_cast<std::uint64_t>(1000 * i);
    const auto none = difference_of(made.trainings(.6, seed, 4), made.trainings(.6, seed + 500, 4));
    outside += none.interval.low > 0 || none.interval.high < 0;
    high += none.p > .5;
    EXPECT_EQ(none.is_real(), none.interval.low > 0 || none.interval.high < 0);
  }
  // 10 of 200 are expected, give or take 3, and 100, give or take 7.
  EXPECT_GE(outside, 3);
  EXPECT_LE(outside, 18);
  EXPECT_NEAR(high, kStudies / 2, 22);
}

TEST(Difference, ALargeOneIsReal) {
  const MadeUp made(3);
  const auto large = difference_of(made.trainings(.9, 1, 5), made.trainings(.4, 1, 5));
  EXPECT_GT(large.interval.low, 0);
  EXPECT_TRUE(large.is_real());
  EXPECT_LT(large.bootstrap_p, kAlpha);
  EXPECT_THAT(sentence(large, 60), HasSubstr("over 5 seeds"));
  EXPECT_THAT(sentence(large, 60), HasSubstr("real, it is better"));
  const auto back = difference_of(made.trainings(.4, 1, 5), made.trainings(.9, 1, 5));
  EXPECT_THAT(sentence(back, 60), HasSubstr("real, it is worse"));
  EXPECT_NEAR(back.interval.low, -large.interval.high, 1e-12);
  EXPECT_NEAR(back.p, large.p, 1e-12);
}

TEST(Difference, WithinNoiseSaysHowManySeedsItTakes) {
  const MadeUp made(4, 200);
  const auto small = difference_of(made.trainings(.61, 1, 3), made.trainings(.6, 11, 3));
  ASSERT_FALSE(small.is_real());
  const auto said = sentence(small, 200);
  EXPECT_THAT(said, HasSubstr("within noise"));
  EXPECT_THAT(said, HasSubstr("3 seeds on these 200 images can show differences of "));
  EXPECT_THAT(said, ::testing::ContainsRegex("takes [0-9,]+ seeds|takes more images"));
}

TEST(Difference, ThreadsChangeNothing) {
  const MadeUp made(5);
  const auto many = difference_of(made.trainings(.6, 1, 3), made.trainings(.5, 1, 3));
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  const auto one = difference_of(made.trainings(.6, 1, 3), made.trainings(.5, 1, 3));
  EXPECT_EQ(many.p, one.p);
  EXPECT_EQ(many.bootstrap.low, one.bootstrap.low);
  EXPECT_EQ(many.bootstrap_p, one.bootstrap_p);
  EXPECT_EQ(many.noise.images, one.noise.images);
}

// Made-up draws of AP, of which the causes are known: what the images do to all seeds alike, and
// what they do to each alone.
TEST(SeedBootstrap, WhatImagesDoToOneSeedAloneIsNotCountedTwice) {
  constexpr std::size_t kSeeds = 5, kMany = 4000;
  constexpr double kShared = .01, kOwn = .02;
  std::vector<ApDraws> all(kSeeds);
  for (std::size_t i = 0; i < kMany; ++i) {
    Rng rng{31, i};
    const double shared = kShared * rng.normal();
    for (auto& one : all) one.draws.push_back(.5 + shared + kOwn * rng.normal());
  }
  for (auto& one : all) one.whole = .5;
  const std::vector<ApDraws> nothing(kSeeds, ApDraws{0, std::vector<double>(kMany, 0)});
  EXPECT_NEAR(bootstrap(all, nothing).images_deviation, kShared, .001);
}

}  // namespace
}  // namespace millrace::study
