// The image sizes, anchors, batch sizes and schedules that are chosen for data sets generated for
// each rule.
#include "millrace/tools/data/adviser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "millrace/base/random.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace::advice {
namespace {

using ::testing::ElementsAre;

constexpr Machine kLaptop{.cores = 2, .memory = 8e9, .gpu = false};
constexpr Machine kServer{.cores = 16, .memory = 64e9, .gpu = true};

/// Returns images of one size with objects of about one size, in pixels.
SeenData made_up(cv::Size size, double object, double ratio = 1, std::size_t images = 20) {
  SeenData data{.classes = {"a"}};
  Rng rng{7};
  for (std::size_t i = 0; i < images; ++i) {
    SeenImage image{.image_id = static_cast<std::int64_t>(i + 1), .original = size, .seen = size};
    image.first = static_cast<std::uint32_t>(data.objects.size());
    image.count = 5;
    for (int k = 0; k < 5; ++k) {
      const double side = object * rng.uniform(.9, 1.1);
      const double width = side / std::sqrt(ratio), height = side * std::sqrt(ratio);
      const double x = rng.uniform(0, size.width - width), y = rng.uniform(0, size.height - height);
      data.objects.push_back(
          {.box = {static_cast<float>(x), static_cast<float>(y), static_cast<float>(x + width),
                   static_cast<float>(y + height)}});
    }
    data.images.push_back(image);
  }
  return data;
}

AnchorRule rule_of(const std::vector<double>& sizes, const std::vector<double>& ratios) {
  AnchorRule rule;
  for (std::size_t level = 0; level < sizes.size(); ++level) {
    AnchorLevel one{{}, std::int64_t{4} << level};
    for (const double ratio : ratios) {
      const auto x = static_cast<float>(sizes[level] / std::sqrt(ratio) / 2),
                 y = static_cast<float>(sizes[level] * std::sqrt(ratio) / 2);
      one.cells.push_back({-x, -y, x, y});
    }
    rule.levels.push_back(one);
  }
  return rule;
}

TEST(ImageSizeChoice, StaysWithinMachineLimits) {
  EXPECT_EQ(choose_sides(made_up({320, 240}, 40), kLaptop).largest(), 256);
  EXPECT_EQ(choose_sides(made_up({4000, 3000}, 1000), kServer).largest(), 800);
  const auto small = choose_sides(made_up({200, 160}, 40), kServer);
  EXPECT_EQ(small.largest(), 160);
}

TEST(ImageSizeChoice, IncreasesForSmallObjectsUpToLimit) {
  const auto enlarged = choose_sides(made_up({1600, 1200}, 60), kLaptop);
  EXPECT_GT(enlarged.largest(), 256);
  EXPECT_FALSE(enlarged.too_small);
  EXPECT_GE(enlarged.small_object, .9 * kLeastObject);
  const auto tiny = choose_sides(made_up({1600, 1200}, 12), kLaptop);
  EXPECT_TRUE(tiny.too_small);
  EXPECT_LE(tiny.largest(), 384);
}

TEST(ImageSizeChoice, DecreasesForLargeObjectsOnCpu) {
  EXPECT_LT(choose_sides(made_up({640, 480}, 300), kLaptop).largest(), 256);
  EXPECT_EQ(choose_sides(made_up({640, 480}, 300), kServer).largest(), 480);
}

TEST(ImageSizeChoice, ReturnsAscendingShortSides) {
  const auto sides = choose_sides(made_up({640, 480}, 40), kLaptop);
  EXPECT_TRUE(std::ranges::is_sorted(sides.short_side));
  EXPECT_EQ(sides.of({640, 480}).height, sides.largest());
  EXPECT_LE(sides.of({640, 480}).width, sides.max_side);
  // One panorama does not change max_side.
  auto mixed = made_up({640, 480}, 40, 1, 40);
  mixed.images[0].original = {6400, 480};
  EXPECT_EQ(choose_sides(mixed, kLaptop).max_side, sides.max_side);
}

TEST(ImageSizeChoice, SupportsDataWithoutObjects) {
  SeenData data{.classes = {"a"}};
  data.images.push_back({.original = {640, 480}});
  EXPECT_GT(choose_sides(data, kLaptop).largest(), 0);
}

TEST(AnchorChoice, CoversMoreThanPublishedAnchors) {
  for (const double object : {10., 20., 90., 300.}) {
    const auto chosen = choose_anchors(made_up({800, 800}, object), rule_of);
    EXPECT_GE(chosen.chosen.all.share(MatchKind::foreground),
              chosen.published.all.share(MatchKind::foreground));
    EXPECT_GE(chosen.chosen.all.recall(0), .9) << object;
  }
  const auto small = choose_anchors(made_up({800, 800}, 12), rule_of);
  EXPECT_LT(small.sizes.front(), 32);
  EXPECT_LT(small.published.all.recall(0), .5);
  EXPECT_DOUBLE_EQ(small.canonical(), 7 * small.sizes.front());
}

TEST(AnchorChoice, AddsLongAnchorsOnlyForLongObjects) {
  EXPECT_THAT(choose_anchors(made_up({800, 800}, 64, 5), rule_of).ratios,
              ElementsAre(.25, .5, 1, 2, 4));
  EXPECT_THAT(choose_anchors(made_up({800, 800}, 64, 1), rule_of).ratios, ElementsAre(.5, 1, 2));
}

/// Returns 60 squares at random positions in an image, whose sizes are drawn from `sides`.
SeenData squares(const std::vector<float>& sides, std::uint64_t seed) {
  SeenData data{.classes = {"one"}};
  Instances objects;
  Rng rng{seed};
  for (std::size_t i = 0; i < 60; ++i) {
    const auto side = sides[i % sides.size()];
    const auto x = static_cast<float>(rng.uniform(0, 700)),
               y = static_cast<float>(rng.uniform(0, 500));
    objects.boxes.push_back({x, y, x + side, y + side});
    objects.classes.push_back(0);
    objects.crowd.push_back(0);
    objects.segmentations.emplace_back();
  }
  add_image(data, {.original = {800, 600}, .seen = {800, 600}}, objects);
  return data;
}

TEST(BetterSizes, FindsSizesThatFitObjects) {
  const auto data = squares({8}, 3);
  const auto advice = better_sizes(data, {}, rule_of);
  ASSERT_TRUE(advice);
  EXPECT_EQ(advice->sizes, (std::vector<double>{8, 16, 32, 64, 128}));
  EXPECT_EQ(advice->published.all.share(MatchKind::foreground), 0);
  EXPECT_GT(advice->chosen.all.share(MatchKind::foreground), 0.1);
  EXPECT_FALSE(better_sizes(data, *advice, rule_of));
  EXPECT_FALSE(better_sizes({}, {}, rule_of));
}

TEST(BetterSizes, NeverReducesRecall) {
  int advised = 0;
  for (const double first : {8, 12, 16, 24, 32}) {
    std::vector<double> sizes;
    for (int level = 0; level < 5; ++level) sizes.push_back(std::ldexp(first, level));
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const auto data = squares({9, 20, 26, 33, 70}, seed);
      const auto half = [&](const std::vector<double>& of) {
        return summary(data, anchor_coverage(data, rule_of(of, {.5, 1, 2}))).all.recall(0);
      };
      const auto advice = better_sizes(data, {.sizes = sizes}, rule_of);
      if (!advice) continue;
      EXPECT_GE(half(advice->sizes), half(sizes)) << first << " " << seed;
      ++advised;
    }
  }
  EXPECT_GT(advised, 5);
}

TEST(BatchSizeChoice, FitsMemoryAndDataSet) {
  EXPECT_EQ(choose_batch(1000, kLaptop), 4);
  EXPECT_EQ(choose_batch(1000, kServer), 8);
  EXPECT_EQ(choose_batch(9, kLaptop), 2);
  EXPECT_EQ(choose_batch(2, kLaptop), 1);
  const Machine small{.cores = 2, .memory = 5e9};
  EXPECT_EQ(batch_in_memory(4, small, 1e8), 4);
  EXPECT_EQ(batch_in_memory(4, small, 1e9), 2);
  EXPECT_EQ(batch_in_memory(4, small, 1e10), 1);
}

TEST(ScheduleChoice, AdaptsEpochsToDataSetSize) {
  std::int64_t last = 1000;
  for (const std::size_t images : {20, 100, 1000, 10'000, 100'000}) {
    const auto plan = choose_plan(images, 4, Start::backbone, false);
    EXPECT_LE(plan.epochs, last);
    last = plan.epochs;
    EXPECT_LT(plan.warmup, plan.steps / 2);
    EXPECT_LE(plan.evaluate_every, plan.epochs);
    EXPECT_LT(choose_plan(images, 4, Start::detector, false).epochs, plan.epochs);
    EXPECT_GT(choose_plan(images, 4, Start::random, false).epochs, plan.epochs);
  }
  EXPECT_EQ(choose_plan(100'000, 4, Start::backbone, false).epochs, 12);
  EXPECT_GE(choose_plan(1, 1, Start::detector, false).warmup, 1);
}

TEST(ScheduleChoice, MatchesTrainingStepCount) {
  const auto plan = choose_plan(25, 4, Start::random, false);
  EXPECT_EQ(plan.steps, count_steps(static_cast<double>(plan.epochs), 25, 4));
  EXPECT_EQ(plan.steps, (25 * plan.epochs + 3) / 4);
  EXPECT_EQ(plan.first_evaluation, (25 * plan.evaluate_every + 3) / 4);
}

TEST(Flips, AreDisabledForSidesAndCharacters) {
  EXPECT_EQ(no_flip_reason({"cat", "dog"}), "");
  EXPECT_EQ(no_flip_reason({"bright", "leftover"}), "");
  EXPECT_NE(no_flip_reason({"shoe_left", "shoe_right"}), "");
  EXPECT_NE(no_flip_reason({"Left shoe"}), "");
  EXPECT_NE(no_flip_reason({"0", "1", "2"}), "");
}

}  // namespace
}  // namespace millrace::advice
