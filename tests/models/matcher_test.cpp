#include "models/layers/matcher.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "models/layers/boxes.h"
#include "tests/models/random_boxes.h"
#include "tests/models/threads.h"

namespace millrace {
namespace {

using testing::random_boxes;
using testing::random_values;
using testing::same;

TEST(Match, NoTruthMakesEverythingBackground) {
  const auto [truth, label] = match(at::zeros({0, 5}), 0.3, 0.7, true);
  EXPECT_TRUE(same(truth, at::zeros({5}, at::kLong)));
  EXPECT_TRUE(same(label, at::zeros({5}, at::kChar)));
}

TEST(Match, ThresholdsAreInclusiveAbove) {
  const auto [truth, label] =
      match(at::tensor({0.29F, 0.3F, 0.69F, 0.7F}).view({1, 4}), 0.3, 0.7, false);
  EXPECT_TRUE(same(label, at::tensor({0, -1, -1, 1}, at::kChar)));
}

TEST(Match, LowQualityBoxesKeepTheirOwnBestTruth) {
  // Box 1 is the best of truth 1 but overlaps truth 0 more.
  const auto iou = at::tensor({0.1F, 0.6F, 0.8F, 0.2F, 0.4F, 0.1F}).view({2, 3});
  const auto [truth, label] = match(iou, 0.3, 0.7, true);
  EXPECT_TRUE(same(truth, at::tensor({1, 0, 0}, at::kLong)));
  EXPECT_TRUE(same(label, at::tensor({0, 1, 1}, at::kChar)));
}

TEST(Match, TiesOfTheBestBoxAllCount) {
  const auto [truth, label] = match(at::tensor({0.2F, 0.1F, 0.2F}).view({1, 3}), 0.3, 0.7, true);
  EXPECT_TRUE(same(label, at::tensor({1, 0, 1}, at::kChar)));
}

TEST(Match, IsTheSameOnAnyNumberOfThreads) {
  const auto iou = box_iou(random_boxes(9, 300, 80, 1), random_boxes(9000, 300, 80, 3));
  testing::expect_same_on_any_threads([&] {
    const auto [truth, label] = match(iou, 0.3, 0.7, true);
    return std::vector{truth, label};
  });
}

/// 40 foreground, 60 ignored, the rest of 1000 background.
at::Tensor some_labels() {
  auto label = at::zeros({1000}, at::kChar);
  label.slice(0, 100, 140).fill_(1);
  label.slice(0, 500, 560).fill_(-1);
  return label;
}

void expect_distinct_ascending(const at::Tensor& indices) {
  EXPECT_GT((indices.slice(0, 1) - indices.slice(0, 0, -1)).min().item<std::int64_t>(), 0);
}

TEST(Sample, DrawsTheRightNumbersOfTheRightKindsWithoutRepeats) {
  Rng rng{1};
  const auto label = some_labels();
  for (const auto& [fraction, positives] : {std::pair{0.25, 32}, {0.5, 40}}) {
    const auto [positive, negative] = sample(label, 128, fraction, rng);
    EXPECT_EQ(positive.numel(), positives);
    EXPECT_EQ(negative.numel(), 128 - positives);
    EXPECT_TRUE(label.index_select(0, positive).eq(1).all().item<bool>());
    EXPECT_TRUE(label.index_select(0, negative).eq(0).all().item<bool>());
    expect_distinct_ascending(positive);
    expect_distinct_ascending(negative);
  }
}

TEST(Sample, IsAFunctionOfTheStream) {
  const auto label = some_labels();
  Rng a{7}, b{7}, c{8};
  const auto first = sample(label, 64, 0.25, a), second = sample(label, 64, 0.25, b);
  EXPECT_TRUE(same(first.positive, second.positive));
  EXPECT_TRUE(same(first.negative, second.negative));
  EXPECT_FALSE(same(first.negative, sample(label, 64, 0.25, c).negative));
}

TEST(Sample, IsUniform) {
  const auto label = at::full({10}, 1, at::kChar);
  auto drawn = at::zeros({10}, at::kLong);
  Rng rng{3};
  for (int i = 0; i < 3000; ++i) {
    const auto positive = sample(label, 3, 1, rng).positive;
    drawn.index_add_(0, positive, at::full({3}, 1, at::kLong));
  }
  EXPECT_GT(drawn.min().item<std::int64_t>(), 800);  // 900 expected, deviation 25
  EXPECT_LT(drawn.max().item<std::int64_t>(), 1000);
}

TEST(Sample, TakesWhatThereIs) {
  Rng rng{1};
  const auto [positive, negative] = sample(at::tensor({1, 0, -1, 0}, at::kChar), 512, 0.25, rng);
  EXPECT_TRUE(same(positive, at::tensor({0}, at::kLong)));
  EXPECT_TRUE(same(negative, at::tensor({1, 3}, at::kLong)));
}

}  // namespace
}  // namespace millrace
