#include "millrace/models/ops/soft_nms.h"

#include <cmath>
#include <stdexcept>

#include "millrace/models/ops/nms.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

/// Two boxes with an IoU of 1/3, and a disjoint box.
const at::Tensor kBoxes = boxes_of({0, 0, 20, 10, 10, 0, 30, 10, 100, 100, 110, 110});
const at::Tensor kScores = at::tensor({0.9F, 0.8F, 0.3F});

TEST(SoftNms, LowersScoresByOverlapWithinGroup) {
  const auto left = static_cast<float>(0.8 * std::exp(-1.0 / 9 / 0.5));
  const auto all = longs({0, 1, 2}), one_group = longs({0, 0, 0});
  const auto softened = [](const at::Tensor& groups, const SoftNmsOptions& options) {
    return soft_nms(kBoxes, kScores, groups, options);
  };
  const auto gaussian = softened(one_group, {.gaussian = true, .sigma = 0.5});
  EXPECT_TRUE(tensors_equal(gaussian.kept, all));
  EXPECT_TRUE(tensors_close(gaussian.scores, at::tensor({0.9F, left, 0.3F}), 1e-6));
  // Linear: scores change only if boxes overlap by more than the threshold.
  EXPECT_TRUE(tensors_close(softened(one_group, {.gaussian = false, .threshold = 0.3}).scores,
                            at::tensor({0.9F, 0.8F * 2 / 3, 0.3F}), 1e-6));
  EXPECT_TRUE(
      tensors_equal(softened(one_group, {.gaussian = false, .threshold = 0.4}).scores, kScores));
  EXPECT_TRUE(tensors_equal(softened(longs({0, 1, 0}), {.sigma = 0.1}).scores, kScores));
  // A box whose score falls below the threshold is removed.
  EXPECT_TRUE(
      tensors_equal(softened(one_group, {.sigma = 0.5, .score_threshold = 0.7}).kept, longs({0})));
}

TEST(SoftNms, MatchesNmsForVanishingSigma) {
  const auto boxes = random_boxes(400, 500, 80, 1);
  const auto scores = random_values({400}, 0.1, 1, 3);
  const auto groups = random_values({400}, 0, 4, 4).floor().to(at::kLong);
  const auto soft = soft_nms(boxes, scores, groups, {.sigma = 1e-15, .score_threshold = 0.05});
  const auto hard = batched_nms(boxes, scores, groups, 0);
  EXPECT_TRUE(tensors_equal(soft.kept, hard));
  EXPECT_TRUE(tensors_equal(soft.scores, scores.index_select(0, hard)));
}

TEST(SoftNms, OnlySortsForHugeSigma) {
  const auto boxes = random_boxes(100, 50, 80, 1);
  const auto scores = random_values({100}, 0.1, 1, 3);
  const auto soft = soft_nms(boxes, scores, at::zeros({100}, at::kLong), {.sigma = 1e9});
  EXPECT_TRUE(tensors_equal(soft.kept, std::get<1>(scores.sort(true, 0, true))));
}

TEST(SoftNms, KeepsOrderOfEqualScores) {
  const auto boxes = kBoxes.index_select(0, longs({0, 1, 0, 1}));
  const auto [kept, scores] =
      soft_nms(boxes, at::full({4}, 0.5), at::zeros({4}, at::kLong), {.sigma = 1});
  EXPECT_TRUE(tensors_equal(kept.slice(0, 0, 2), longs({0, 1})));
}

TEST(SoftNms, DoesNotDependOnThreadCount) {
  const auto boxes = random_boxes(1000, 300, 80, 1);
  const auto scores = random_values({1000}, 0, 1, 3);
  const auto groups = random_values({1000}, 0, 9, 4).floor().to(at::kLong);
  expect_same_on_any_threads([&] {
    const auto [kept, left] = soft_nms(boxes, scores, groups, {.score_threshold = 0.01});
    return std::vector{kept, left};
  });
}

TEST(SoftNms, RejectsInvalidArguments) {
  const auto none =
      soft_nms(kBoxes.slice(0, 0, 0), kScores.slice(0, 0, 0), at::zeros({0}, at::kLong), {});
  EXPECT_EQ(none.kept.numel(), 0);
  EXPECT_THROW(soft_nms(kBoxes, kScores, at::zeros({2}, at::kLong), {}), std::invalid_argument);
  EXPECT_THROW(soft_nms(kBoxes, kScores, at::zeros({3}, at::kLong), {.sigma = 0}),
               std::invalid_argument);
}

}  // namespace
}  // namespace millrace::testing
