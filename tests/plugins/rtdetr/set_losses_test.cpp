#include "millrace/plugins/rtdetr/set_losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <limits>

#include "millrace/plugins/rtdetr/box_forms.h"
#include "tests/plugins/rtdetr/tiny.h"
#include "tests/support/tensors.h"

namespace millrace::rtdetr::testing {
namespace {

using millrace::testing::tensors_close;

at::Tensor boxes(const std::vector<double>& values) {
  return at::tensor(values, at::kFloat).view({-1, 4});
}

TEST(BoxFormats, ConvertInBothDirections) {
  const auto some = boxes({0.5, 0.4, 0.2, 0.6, 0.1, 0.9, 0.1, 0.2});
  EXPECT_TRUE(tensors_close(to_corners(some)[0], at::tensor({0.4F, 0.1F, 0.6F, 0.7F}), 1e-6));
  EXPECT_TRUE(tensors_close(to_centers(to_corners(some)), some, 1e-6));
}

TEST(BoxFormats, HaveFiniteIouForEmptyBoxes) {
  const auto a = boxes({0, 0, 2, 2}), b = boxes({1, 1, 3, 3}), empty = boxes({1, 1, 1, 1});
  EXPECT_FLOAT_EQ(overlap_of(a, a).giou.item<float>(), 1);
  EXPECT_FLOAT_EQ(overlap_of(a, b).iou.item<float>(), 1.0F / 7);
  EXPECT_FLOAT_EQ(overlap_of(a, b).giou.item<float>(), 1.0F / 7 - 2.0F / 9);
  EXPECT_EQ(overlap_of(empty, empty).iou.item<float>(), 0);
  EXPECT_EQ(overlap_of(empty, empty).giou.item<float>(), 0);
}

TEST(Match, FindsQueryForEachObject) {
  const auto targets = tiny_targets();
  Prediction prediction{at::full({2, 6, 3}, -4.0), at::full({2, 6, 4}, 0.2)};
  const std::vector<std::int64_t> queries = {4, 0, 3};
  for (std::int64_t i = 0; i < 3; ++i) {
    prediction.boxes[0][queries[static_cast<std::size_t>(i)]].copy_(targets[0].boxes[i]);
    prediction.logits[0][queries[static_cast<std::size_t>(i)]][targets[0].labels[i].item<long>()] =
        3;
  }
  prediction.boxes[1][5].copy_(targets[1].boxes[0]);
  const auto pairs = match(prediction, targets, {});
  EXPECT_TRUE(pairs.queries.equal(at::tensor({4L, 0L, 3L, 11L})));
  EXPECT_TRUE(pairs.labels.equal(at::tensor({0L, 2L, 1L, 1L})));
}

TEST(Match, AcceptsAnyNumberOfObjects) {
  auto targets = tiny_targets();
  targets[1] = {at::zeros({0}, at::kLong), at::zeros({0, 4}, at::kFloat)};
  const Prediction prediction{at::zeros({2, 2, 3}), at::full({2, 2, 4}, 0.3)};
  EXPECT_EQ(match(prediction, targets, {}).queries.size(0), 2);
  const std::vector<Target> none(2, targets[1]);
  const auto pairs = match(prediction, none, {});
  EXPECT_EQ(pairs.queries.size(0), 0);
  const auto losses = set_losses(prediction, pairs, {});
  EXPECT_EQ(losses.l1.item<float>(), 0);
  EXPECT_EQ(losses.giou.item<float>(), 0);
  EXPECT_GT(losses.classes.item<float>(), 0);
}

TEST(Match, MatchesNonFinitePredictionsLast) {
  const auto targets = tiny_targets();
  Prediction prediction{at::zeros({2, 4, 3}), at::full({2, 4, 4}, 0.3)};
  prediction.boxes[0][1].fill_(std::numeric_limits<float>::quiet_NaN());
  const auto pairs = match(prediction, targets, {});
  EXPECT_FALSE((pairs.queries == 1).any().item<bool>());
}

}  // namespace
}  // namespace millrace::rtdetr::testing
