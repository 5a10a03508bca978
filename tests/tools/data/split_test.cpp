// Splits images into training and validation, on generated data sets of all kinds.
#include "millrace/tools/data/split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "millrace/base/random.h"

namespace millrace::advice {
namespace {

/// Returns `count` images in groups of 1 to 4. Each image has some of the classes; lower class
/// numbers are more frequent.
std::vector<SplitImage> made_up(std::size_t count, std::size_t classes, std::uint64_t seed) {
  std::vector<SplitImage> images;
  for (std::size_t group = 0; images.size() < count; ++group) {
    Rng rng{seed, group};
    for (auto left = rng.between(1, 4); left > 0 && images.size() < count; --left) {
      SplitImage image{group, {}};
      for (std::size_t k = 0; k < classes; ++k)
        if (rng.chance(.7 / static_cast<double>(k + 1))) image.classes.push_back(k);
      images.push_back(image);
    }
  }
  return images;
}

/// Returns the groups that contain each class, of the validation images of `only`, or of all images
/// if it is null.
std::vector<std::set<std::size_t>> groups_by_class(const std::vector<SplitImage>& images,
                                                   std::size_t classes,
                                                   const std::vector<bool>* only = nullptr) {
  std::vector<std::set<std::size_t>> groups(classes);
  for (std::size_t i = 0; i < images.size(); ++i)
    if (!only || (*only)[i])
      for (const auto k : images[i].classes) groups[k].insert(images[i].group);
  return groups;
}

std::size_t validation_images(const std::vector<bool>& choice) {
  return static_cast<std::size_t>(std::ranges::count(choice, true));
}

TEST(ChooseSplit, KeepsGroupsWhole) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto images = made_up(100, 6, seed);
    const auto choice = choose_split(images, 6, .2, 1);
    for (std::size_t i = 1; i < images.size(); ++i)
      if (images[i].group == images[i - 1].group) {
        EXPECT_EQ(choice[i], choice[i - 1]) << "image " << i;
      }
  }
}

TEST(ChooseSplit, SplitsClassesThatOccurInTwoGroups) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto images = made_up(60, 8, seed);
    const auto choice = choose_split(images, 8, .2, 1);
    const auto all = groups_by_class(images, 8), validating = groups_by_class(images, 8, &choice);
    for (std::size_t k = 0; k < 8; ++k) {
      if (all[k].size() < 2) continue;
      EXPECT_GT(validating[k].size(), 0U) << "seed " << seed << ", class " << k;
      EXPECT_LT(validating[k].size(), all[k].size()) << "seed " << seed << ", class " << k;
    }
  }
}

TEST(ChooseSplit, KeepsClassesOfOneGroupForTraining) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto images = made_up(50, 4, seed);
    const auto rare = seed * 2 % 50;
    images[rare].classes = {4};
    const auto choice = choose_split(images, 5, .2, seed);
    EXPECT_FALSE(choice[rare]);
  }
}

TEST(ChooseSplit, MatchesShareForImagesAndClasses) {
  const auto images = made_up(2000, 5, 3);
  const auto choice = choose_split(images, 5, .2, 1);
  EXPECT_NEAR(static_cast<double>(validation_images(choice)) / 2000, .2, .01);
  std::vector<double> all(5), validating(5);
  for (std::size_t i = 0; i < images.size(); ++i)
    for (const auto k : images[i].classes) {
      all[k] += 1;
      validating[k] += choice[i] ? 1 : 0;
    }
  for (std::size_t k = 0; k < 5; ++k) EXPECT_NEAR(validating[k] / all[k], .2, .02) << "class " << k;
}

TEST(ChooseSplit, DependsOnlyOnSeed) {
  const auto images = made_up(100, 5, 7);
  EXPECT_EQ(choose_split(images, 5, .2, 1), choose_split(images, 5, .2, 1));
  EXPECT_NE(choose_split(images, 5, .2, 1), choose_split(images, 5, .2, 2));
}

TEST(ChooseSplit, SupportsDataThatCannotBeSplit) {
  const std::vector<SplitImage> three = {{0, {0}}, {1, {0}}, {2, {0}}};
  EXPECT_EQ(validation_images(choose_split(three, 1, .2, 1)), 1U);
  const std::vector<SplitImage> one_scene = {{0, {0}}, {0, {0}}, {0, {0}}};
  EXPECT_EQ(validation_images(choose_split(one_scene, 1, .2, 1)), 0U);
  EXPECT_EQ(validation_images(choose_split({}, 1, .2, 1)), 0U);
  // Both groups contain class 0, so one can be used for validation; the only group with class 1 is
  // used for training.
  const std::vector<SplitImage> two = {{0, {0, 1}}, {1, {0}}};
  const auto choice = choose_split(two, 2, .2, 1);
  EXPECT_FALSE(choice[0]);
  EXPECT_TRUE(choice[1]);
}

TEST(ChooseSplit, KeepsTwoThirdsForTraining) {
  std::vector<SplitImage> images;  // each class in two images of its own
  for (std::size_t i = 0; i < 60; ++i) images.push_back({i, {i / 2}});
  const auto choice = choose_split(images, 30, .2, 1);
  EXPECT_EQ(validation_images(choice), 20U);
  const auto validating = groups_by_class(images, 30, &choice);
  const auto of_class = [](const auto& groups) { return groups.size(); };
  EXPECT_EQ(std::ranges::count(validating, 0U, of_class), 10);
  EXPECT_EQ(std::ranges::count(validating, 2U, of_class), 0);
}

TEST(ValidationShare, ReturnsOneFifthUpTo5000Images) {
  EXPECT_DOUBLE_EQ(validation_share(100), .2);
  EXPECT_DOUBLE_EQ(validation_share(118'000) * 118'000, 5000);
}

}  // namespace
}  // namespace millrace::advice
