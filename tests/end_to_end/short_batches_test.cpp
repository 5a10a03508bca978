// The real executable with a lost image: every way to divide a step uses the remaining images.
#include "tests/end_to_end/short_batches.h"

namespace millrace::testing {
namespace {

TEST_F(ShortBatches, TrainInMicroBatchesOnOneRank) {
  expect_step({"maskrcnn", "skip"}, {.micro_batch = 2});
  expect_step({"retinanet", "filter"}, {.accumulate = 2, .micro_batch = 1});
}

TEST_F(ShortBatches, TrainInMicroBatchesOnTwoRanks) {
  expect_step({"maskrcnn", "filter"}, {.ranks = 2, .micro_batch = 1});
  expect_step({"fasterrcnn", "skip"}, {.ranks = 2, .accumulate = 2, .micro_batch = 1, .passes = 2});
}

TEST_F(ShortBatches, StayFullIfImagesAreReplaced) {
  expect_step({"retinanet", "replace"}, {.ranks = 2, .micro_batch = 2});
}

TEST_F(ShortBatches, AreErrorsIfNoImageMayBeSkipped) {
  expect_failure({"retinanet", "fail"}, {.ranks = 2, .micro_batch = 1});
}

TEST_F(ShortBatches, GiveSameBytesForAnyThreadCount) {
  const Division division{.ranks = 2, .accumulate = 2, .micro_batch = 1};
  Recipe recipe{"maskrcnn", "skip"};
  const auto whole = train(recipe, division, "whole");
  recipe.settings = {"data.threads=1"};
  recipe.steps = 1;
  train(recipe, division, "parts");
  recipe.settings = {"data.threads=3"};
  recipe.steps = 2;
  const auto parts = train(recipe, division, "parts");
  EXPECT_TRUE(parts.weights == whole.weights);
  EXPECT_TRUE(parts.momentum == whole.momentum);
}

}  // namespace
}  // namespace millrace::testing
