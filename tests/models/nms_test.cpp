#include "millrace/models/ops/nms.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <stdexcept>

#include "millrace/models/ops/boxes.h"
#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

struct ManyBoxes {
  at::Tensor boxes = random_boxes(1500, 300, 60, 1);
  at::Tensor scores = (random_values({1500}, 0, 1, 3) * 200).round() / 200;  // with ties
  at::Tensor groups = random_values({1500}, -2, 5, 4).floor().to(at::kLong);

  at::Tensor kept(double threshold, double offset = 0) const {
    return batched_nms(boxes, scores, groups, threshold, offset);
  }

  /// Computes NMS by its definition, in plain loops.
  at::Tensor kept_by_definition(double threshold, double offset) const {
    const auto order = std::get<1>(scores.sort(/*stable=*/true, 0, true));
    const auto iou = box_iou(boxes, boxes, offset);
    const auto* group = groups.const_data_ptr<std::int64_t>();
    std::vector<std::int64_t> result;
    for (std::int64_t rank = 0; rank < order.numel(); ++rank) {
      const auto box = order[rank].item<std::int64_t>();
      const auto* row = iou.const_data_ptr<float>() + box * order.numel();
      if (std::ranges::none_of(result, [&](auto other) {
            return group[other] == group[box] && row[other] > threshold;
          }))
        result.push_back(box);
    }
    return longs(result);
  }
};

TEST(BatchedNms, MatchesDefinitionAtAnyThreshold) {
  ManyBoxes scene;
  for (const double threshold : {0.0, 0.1, 0.3, 0.5, 0.7, 0.95, 1.0})
    for (const double offset : {0, 1})
      for (const bool one_group : {false, true}) {
        scene.groups = one_group ? at::zeros_like(scene.groups) : ManyBoxes{}.groups;
        EXPECT_TRUE(tensors_equal(scene.kept(threshold, offset),
                                  scene.kept_by_definition(threshold, offset)))
            << threshold;
      }
}

TEST(BatchedNms, DoesNotDependOnThreadCount) {
  const ManyBoxes scene;
  expect_same_on_any_threads([&] { return std::vector{scene.kept(0.4)}; });
}

TEST(BatchedNms, AcceptsNoBoxes) {
  EXPECT_EQ(batched_nms(at::zeros({0, 4}), at::zeros({0}), longs({}), 0.5).numel(), 0);
}

TEST(BatchedNms, RejectsInvalidThresholdsAndShapes) {
  const ManyBoxes scene;
  for (const double threshold : {-0.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(scene.kept(threshold), std::invalid_argument);
  for (const auto part : {&ManyBoxes::scores, &ManyBoxes::groups}) {
    auto odd = scene;
    odd.*part = (odd.*part).slice(0, 1);
    EXPECT_THROW(odd.kept(0.5), std::invalid_argument);
  }
}

}  // namespace
}  // namespace millrace::testing
