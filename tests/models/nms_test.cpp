#include "models/ops/nms.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>

#include <stdexcept>

#include "models/layers/boxes.h"
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

TEST(BatchedNms, RefusesShapesThatDoNotFit) {
  const Scene scene;
  EXPECT_THROW(nms(scene.boxes, scene.scores.slice(0, 1), 0.5), std::invalid_argument);
  EXPECT_THROW(batched_nms(scene.boxes, scene.scores, scene.groups.slice(0, 1), 0.5),
               std::invalid_argument);
}

}  // namespace
}  // namespace millrace
