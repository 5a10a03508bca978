#include "millrace/models/ops/matcher.h"

#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <sys/resource.h>

#include <stdexcept>

#include "millrace/models/layers/anchors.h"
#include "millrace/models/ops/boxes.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

/// Boxes (0, top) - (100, bottom).
at::Tensor of_rows(const std::vector<std::pair<int, int>>& rows) {
  std::vector<float> corners;
  for (const auto& [top, bottom] : rows)
    for (const int corner : {0, top, 100, bottom}) corners.push_back(static_cast<float>(corner));
  return boxes_of(corners);
}

/// Boxes (0, 0) - (100, height): of two, the IoU is the ratio of heights.
at::Tensor of_heights(const std::vector<int>& heights) {
  std::vector<std::pair<int, int>> rows;
  for (const int height : heights) rows.emplace_back(0, height);
  return of_rows(rows);
}

/// The definition, on the whole table.
Matches match_by_table(const at::Tensor& truth, const at::Tensor& boxes,
                       const MatchOptions& options) {
  const auto iou = box_iou(truth, boxes, options.offset);
  const auto [best, row] = iou.max(0);
  auto foreground = best >= static_cast<float>(options.high);
  const auto ignored = (best >= static_cast<float>(options.low)) & ~foreground;
  auto label = foreground.to(at::kChar) - ignored.to(at::kChar);
  if (options.low_quality) {
    const auto highest = (iou.eq(std::get<0>(iou.max(1, /*keepdim=*/true))) & (iou > 0)).any(0);
    label = at::where(highest, at::ones_like(label), label);
  }
  return {row, label};
}

struct MatchCase {
  at::Tensor truths, boxes;
  MatchOptions options;
  std::vector<std::int64_t> label;
};

TEST(Match, OfAFewBoxes) {
  const MatchOptions strict{0.3, 0.7}, best{0.6, 0.7, true}, loose{0.3, 0.7, true};
  const auto none = at::zeros({0, 4}), one = of_heights({100});
  const std::vector<MatchCase> cases = {
      {none, of_heights({9, 9}), loose, {0, 0}},
      {of_heights({9, 9}), none, loose, {}},
      // An IoU of `low` is no background any more, one of `high` is foreground.
      {one, of_heights({29, 30, 69, 70}), strict, {0, -1, -1, 1}},
      // Box 1 is the best of truth 1 but overlaps truth 0 more, and keeps it.
      {of_rows({{0, 100}, {100, 200}}), of_rows({{0, 10}, {40, 140}, {500, 600}}), best, {0, 1, 0}},
      // A truth that no box overlaps.
      {of_rows({{500, 600}}), of_rows({{0, 100}, {100, 200}}), loose, {0, 0}},
      {one, of_heights({20, 10, 20}), loose, {1, 0, 1}}};  // ties
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [truths, boxes, options, label] = cases[i];
    const auto matches = match(truths, boxes, options);
    EXPECT_TRUE(same(matches.truth, at::zeros({boxes.size(0)}, at::kLong))) << i;
    EXPECT_TRUE(same(matches.label, longs(label).to(at::kChar))) << i;
  }
}

TEST(Match, IsTheTableOfOverlapsWorkedOutBlockByBlock) {
  const auto truths = random_boxes(60, 3000, 300, 1);
  for (const std::int64_t count : {1, 1023, 1024, 9000})
    for (const double offset : {0.0, 1.0})
      for (const bool low_quality : {false, true}) {
        // In order of height, as anchors are, so that blocks lie apart.
        auto boxes = random_boxes(count, 3000, 300, 3);
        boxes = boxes.index_select(0, boxes.select(1, 1).argsort());
        const MatchOptions options{0.3, 0.7, low_quality, offset};
        const auto [truth, label] = match(truths, boxes, options);
        const auto expected = match_by_table(truths, boxes, options);
        EXPECT_TRUE(same(truth, expected.truth)) << count;
        EXPECT_TRUE(same(label, expected.label)) << count;
      }
}

TEST(Match, BoxesThatAreNotFiniteAreBackground) {
  const auto boxes = boxes_of({kNan, 0, 10, 10, 0, 0, kInfinite, 10,  //
                               0, 0, 10, 10, 0, 0, 10, kNan});
  const auto [truth, label] = match(boxes.slice(0, 2, 3), boxes, {});
  EXPECT_TRUE(same(label, at::tensor({0, 0, 1, 0}, at::kChar)));
}

TEST(Match, IsTheSameOnAnyNumberOfThreads) {
  const auto truths = random_boxes(9, 300, 80, 1), boxes = random_boxes(9000, 300, 80, 3);
  expect_same_on_any_threads([&] {
    const auto [truth, label] = match(truths, boxes, {0.3, 0.7, true});
    return std::vector{truth, label};
  });
}

/// The most memory that this process ever held, KiB.
long peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Match, NeedsFewMebibytesForAThousandObjectsAndAllAnchors) {
  const auto truths = random_boxes(1000, 1300, 200, 1);
  const auto cells = cell_anchors({32}, {0.5, 1, 2}, "exact", 4);
  const auto anchors = grid_anchors(cells, 200, 450, {4, 4});  // 270,000
  match(truths.slice(0, 0, 1), anchors, {.low = 0.3, .high = 0.7, .low_quality = true});
  const auto before = peak_memory();
  match(truths, anchors, {.low = 0.3, .high = 0.7, .low_quality = true});
  EXPECT_LT(peak_memory() - before, 16 * 1024);  // the table would be of a gibibyte
}

TEST(Match, RefusesShapesThatDoNotFit) {
  EXPECT_THROW(match(at::zeros({3}), at::zeros({5, 4}), {}), std::invalid_argument);
  EXPECT_THROW(match(at::zeros({3, 4}), at::zeros({5, 5}), {}), std::invalid_argument);
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
}  // namespace millrace::testing
