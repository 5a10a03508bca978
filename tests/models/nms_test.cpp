#include "millrace/models/ops/nms.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "millrace/models/ops/boxes.h"
#include "tests/models/random_boxes.h"
#include "tests/models/threads.h"

namespace millrace {
namespace {

using testing::random_boxes;
using testing::random_values;
using testing::same;

struct Scene {
  at::Tensor boxes = random_boxes(1500, 300, 60, 1);
  at::Tensor scores = (random_values({1500}, 0, 1, 3) * 200).round() / 200;  // with ties
  at::Tensor groups = random_values({1500}, -2, 5, 4).floor().to(at::kLong);
};

TEST(Nms, KeepsNoTwoThatOverlapAndDropsNoneThatDoesNot) {
  const Scene scene;
  const auto kept = nms(scene.boxes, scene.scores, 0.4);
  const auto best = scene.boxes.index_select(0, kept);
  const auto among = box_iou(best, best).fill_diagonal_(0);
  EXPECT_LE(among.max().item<float>(), 0.4F);
  const auto highest = std::get<0>(box_iou(scene.boxes, best).max(1));
  EXPECT_GT(highest.min().item<float>(), 0.4F);  // each box is kept or overlaps one that is
}

TEST(Nms, ChangesNothingTheSecondTime) {
  const Scene scene;
  const auto kept = nms(scene.boxes, scene.scores, 0.5);
  const auto again =
      nms(scene.boxes.index_select(0, kept), scene.scores.index_select(0, kept), 0.5);
  EXPECT_TRUE(same(again, at::arange(kept.numel(), at::kLong)));
}

TEST(Nms, LegacyOffsetWidensBoxes) {
  const auto boxes = at::tensor({0, 0, 9, 9, 0, 5, 9, 14}, at::kFloat).view({2, 4});
  const auto scores = at::tensor({0.9, 0.8}, at::kFloat);
  EXPECT_EQ(nms(boxes, scores, 0.3).numel(), 2);     // IoU 36 / 126
  EXPECT_EQ(nms(boxes, scores, 0.3, 1).numel(), 1);  // IoU 50 / 150
}

TEST(BatchedNms, IsNmsOfEachGroupAlone) {
  const Scene scene;
  const auto kept = batched_nms(scene.boxes, scene.scores, scene.groups, 0.4);
  for (std::int64_t group = -2; group < 5; ++group) {
    const auto members = scene.groups.eq(group).nonzero().squeeze(1);
    const auto alone =
        nms(scene.boxes.index_select(0, members), scene.scores.index_select(0, members), 0.4);
    const auto of_group = kept.masked_select(scene.groups.index_select(0, kept).eq(group));
    EXPECT_TRUE(same(of_group, members.index_select(0, alone))) << "group " << group;
  }
  const auto scores = scene.scores.index_select(0, kept);
  EXPECT_TRUE(same(scores, std::get<0>(scores.sort(true, 0, true))));
}

TEST(BatchedNms, IsTheSameOnAnyNumberOfThreads) {
  const Scene scene;
  testing::expect_same_on_any_threads(
      [&] { return std::vector{batched_nms(scene.boxes, scene.scores, scene.groups, 0.4)}; });
}

TEST(Nms, TakesNoBoxes) {
  EXPECT_EQ(nms(at::zeros({0, 4}), at::zeros({0}), 0.5).numel(), 0);
  EXPECT_EQ(batched_nms(at::zeros({0, 4}), at::zeros({0}), at::zeros({0}, at::kLong), 0.5).numel(),
            0);
}

TEST(Nms, RefusesAThresholdThatIsNoIou) {
  const Scene scene;
  for (const double threshold : {-0.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(nms(scene.boxes, scene.scores, threshold), std::invalid_argument);
}

/// The definition, in plain loops.
at::Tensor nms_by_definition(const Scene& scene, double threshold) {
  const auto order = std::get<1>(scene.scores.sort(/*stable=*/true, 0, true));
  const auto iou = box_iou(scene.boxes, scene.boxes);
  std::vector<std::int64_t> kept;
  for (std::int64_t rank = 0; rank < order.numel(); ++rank) {
    const auto box = order[rank].item<std::int64_t>();
    const auto* row = iou.const_data_ptr<float>() + box * order.numel();
    if (std::ranges::none_of(kept, [&](auto other) { return row[other] > threshold; }))
      kept.push_back(box);
  }
  return at::tensor(kept, at::kLong);
}

TEST(Nms, IsTheDefinitionAtAnyThreshold) {
  const Scene scene;
  for (const double threshold : {0.0, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0})
    EXPECT_TRUE(
        same(nms(scene.boxes, scene.scores, threshold), nms_by_definition(scene, threshold)))
        << threshold;
}

TEST(BatchedNms, RefusesShapesThatDoNotFit) {
  const Scene scene;
  EXPECT_THROW(nms(scene.boxes, scene.scores.slice(0, 1), 0.5), std::invalid_argument);
  EXPECT_THROW(batched_nms(scene.boxes, scene.scores, scene.groups.slice(0, 1), 0.5),
               std::invalid_argument);
}

}  // namespace
}  // namespace millrace
