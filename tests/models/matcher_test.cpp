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

/// Returns boxes from (0, top) to (100, bottom).
at::Tensor of_rows(const std::vector<std::pair<int, int>>& rows) {
  std::vector<float> corners;
  for (const auto& [top, bottom] : rows)
    for (const int corner : {0, top, 100, bottom}) corners.push_back(static_cast<float>(corner));
  return boxes_of(corners);
}

/// Returns boxes from (0, 0) to (100, height). The IoU of two such boxes is the ratio of their
/// heights.
at::Tensor of_heights(const std::vector<int>& heights) {
  std::vector<std::pair<int, int>> rows;
  for (const int height : heights) rows.emplace_back(0, height);
  return of_rows(rows);
}

/// Matches by the definition, with the full IoU matrix.
Matches match_by_table(const at::Tensor& truth, const at::Tensor& boxes,
                       const MatchOptions& options) {
  const auto iou = box_iou(truth, boxes, options.offset);
  const auto [best, row] = iou.max(0);
  auto foreground = best >= static_cast<float>(options.fg_iou_thresh);
  const auto ignored = (best >= static_cast<float>(options.bg_iou_thresh)) & ~foreground;
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

TEST(Match, ReturnsExpectedLabels) {
  const MatchOptions strict{0.3, 0.7}, best{0.6, 0.7, true}, loose{0.3, 0.7, true};
  const auto none = at::zeros({0, 4}), one = of_heights({100});
  const std::vector<MatchCase> cases = {
      {none, of_heights({9, 9}), loose, {0, 0}},
      {of_heights({9, 9}), none, loose, {}},
      // An IoU equal to bg_iou_thresh is not background; an IoU equal to fg_iou_thresh is
      // foreground.
      {one, of_heights({29, 30, 69, 70}), strict, {0, -1, -1, 1}},
      // Box 1 is truth 1's best match, but overlaps truth 0 more and is matched to truth 0.
      {of_rows({{0, 100}, {100, 200}}), of_rows({{0, 10}, {40, 140}, {500, 600}}), best, {0, 1, 0}},
      // A truth without overlapping boxes.
      {of_rows({{500, 600}}), of_rows({{0, 100}, {100, 200}}), loose, {0, 0}},
      {one, of_heights({20, 10, 20}), loose, {1, 0, 1}}};  // ties
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [truths, boxes, options, label] = cases[i];
    const auto matches = match(truths, boxes, options);
    EXPECT_TRUE(tensors_equal(matches.truth, at::zeros({boxes.size(0)}, at::kLong))) << i;
    EXPECT_TRUE(tensors_equal(matches.label, longs(label).to(at::kChar))) << i;
  }
}

TEST(Match, MatchesDefinition) {
  const auto truths = random_boxes(60, 3000, 300, 1);
  for (const std::int64_t count : {1, 1023, 1024, 9000})
    for (const double offset : {0.0, 1.0})
      for (const bool low_quality : {false, true}) {
        // Sorted by y1, as anchors are, so that the blocks of boxes are disjoint.
        auto boxes = random_boxes(count, 3000, 300, 3);
        boxes = boxes.index_select(0, boxes.select(1, 1).argsort());
        const MatchOptions options{0.3, 0.7, low_quality, offset};
        const auto [truth, label] = match(truths, boxes, options);
        const auto expected = match_by_table(truths, boxes, options);
        EXPECT_TRUE(tensors_equal(truth, expected.truth)) << count;
        EXPECT_TRUE(tensors_equal(label, expected.label)) << count;
      }
}

TEST(Match, LabelsNonFiniteBoxesAsBackground) {
  const auto boxes = boxes_of({kNan, 0, 10, 10, 0, 0, kInfinite, 10,  //
                               0, 0, 10, 10, 0, 0, 10, kNan});
  const auto [truth, label] = match(boxes.slice(0, 2, 3), boxes, {});
  EXPECT_TRUE(tensors_equal(label, at::tensor({0, 0, 1, 0}, at::kChar)));
}

TEST(Match, DoesNotDependOnThreadCount) {
  const auto truths = random_boxes(9, 300, 80, 1), boxes = random_boxes(9000, 300, 80, 3);
  expect_same_on_any_threads([&] {
    const auto [truth, label] = match(truths, boxes, {0.3, 0.7, true});
    return std::vector{truth, label};
  });
}

/// Returns the peak resident memory of this process in KiB.
long peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Match, NeedsLittleMemoryForManyObjects) {
  const auto truths = random_boxes(1000, 1300, 200, 1);
  const auto cells = cell_anchors({32}, {0.5, 1, 2}, AnchorRounding::exact, 4);
  const auto anchors = grid_anchors(cells, 200, 450, {4, 4});  // 270,000
  match(truths.slice(0, 0, 1), anchors,
        {.bg_iou_thresh = 0.3, .fg_iou_thresh = 0.7, .low_quality = true});
  const auto before = peak_memory();
  match(truths, anchors, {.bg_iou_thresh = 0.3, .fg_iou_thresh = 0.7, .low_quality = true});
  EXPECT_LT(peak_memory() - before, 16 * 1024);  // the IoU matrix would take 1 GiB
}

TEST(Match, RejectsShapeMismatch) {
  EXPECT_THROW(match(at::zeros({3}), at::zeros({5, 4}), {}), std::invalid_argument);
  EXPECT_THROW(match(at::zeros({3, 4}), at::zeros({5, 5}), {}), std::invalid_argument);
}

TEST(Match, MatchesBatchImageByImage) {
  const auto truths = random_boxes(12, 300, 80, 1), boxes = random_boxes(3000, 300, 80, 3);
  const auto begins = longs({0, 5, 5, 12});
  const MatchOptions options{0.3, 0.7, true};
  for (const bool shared : {true, false}) {
    const auto own = shared ? boxes.expand({3, -1, 4}) : boxes.view({3, 1000, 4});
    const auto all = match(truths, begins, own, options);
    for (std::int64_t image = 0; image < 3; ++image) {
      const auto first = begins[image].item<std::int64_t>(),
                 count = begins[image + 1].item<std::int64_t>() - first;
      const auto [truth, label] = match(truths.narrow(0, first, count), own[image], options);
      EXPECT_TRUE(tensors_equal(all.truth[image], count > 0 ? truth + first : truth));
      EXPECT_TRUE(tensors_equal(all.label[image], label));
    }
  }
  EXPECT_THROW(match(truths, begins, boxes.view({2, 1500, 4}), options), std::invalid_argument);
}

}  // namespace
}  // namespace millrace::testing
