#include "millrace/models/ops/boxes.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "tests/models/random_boxes.h"
#include "tests/models/threads.h"

namespace millrace {
namespace {

using testing::close;
using testing::random_boxes;
using testing::random_values;
using testing::same;

TEST(BoxCoder, DecodesWhatItEncodes) {
  const auto proposals = random_boxes(200, 500, 60, 1), boxes = random_boxes(200, 500, 60, 3);
  for (const double offset : {0.0, 1.0})
    for (const auto& weights : {std::array{1.0, 1.0, 1.0, 1.0}, std::array{10.0, 10.0, 5.0, 5.0}}) {
      const BoxCoder coder{.weights = weights, .offset = offset};
      EXPECT_TRUE(close(coder.decode(proposals, coder.encode(proposals, boxes)), boxes, 1e-6));
    }
}

TEST(BoxCoder, NoDeltasGiveTheProposals) {
  const auto proposals = random_boxes(50, 500, 200, 1);
  EXPECT_TRUE(
      close(BoxCoder{}.decode(proposals, at::zeros({50, 12})), proposals.repeat({1, 3}), 1e-6));
}

TEST(BoxCoder, CutsHugeScales) {
  const auto proposals = at::tensor({0, 0, 16, 16}, at::kFloat).view({1, 4});
  const auto boxes =
      BoxCoder{}.decode(proposals, at::tensor({0, 0, 50, 50}, at::kFloat).view({1, 4}));
  EXPECT_TRUE(close(boxes, at::tensor({-492, -492, 508, 508}, at::kFloat).view({1, 4}), 1e-6));
}

TEST(BoxIou, IsOneForABoxAndItself) {
  const auto boxes = random_boxes(100, 500, 200, 1);
  EXPECT_TRUE(close(box_iou(boxes, boxes).diagonal(), at::zeros({100}) + 1, 1e-6));
}

TEST(BoxIou, EmptyBoxesOverlapNothing) {
  const auto boxes = at::tensor({5, 5, 5, 5, 0, 0, 10, 10}, at::kFloat).view({2, 4});
  EXPECT_TRUE(same(box_iou(boxes, boxes), at::tensor({0, 0, 0, 1}, at::kFloat).view({2, 2})));
  EXPECT_EQ(box_iou(boxes.slice(0, 0, 0), boxes).numel(), 0);
}

TEST(BoxIou, LegacyOffsetCountsTheLastPixel) {
  const auto boxes = at::tensor({0, 0, 9, 9, 0, 5, 9, 14}, at::kFloat).view({2, 4});
  EXPECT_FLOAT_EQ(box_iou(boxes, boxes, 1)[0][1].item<float>(), 50.F / 150);
}

TEST(BoxIou, IsTheSameOnAnyNumberOfThreads) {
  const auto a = random_boxes(7, 500, 200, 1), b = random_boxes(5000, 500, 200, 3);
  testing::expect_same_on_any_threads([&] { return std::vector{box_iou(a, b)}; });
}

TEST(ClipBoxes, KeepsBoxesInside) {
  const auto boxes = at::tensor({-5, -5, 50, 50, 2, 3, 4, 5}, at::kFloat).view({2, 4});
  EXPECT_TRUE(same(clip_boxes(boxes, /*height=*/20, /*width=*/30),
                   at::tensor({0, 0, 30, 20, 2, 3, 4, 5}, at::kFloat).view({2, 4})));
}

}  // namespace
}  // namespace millrace
