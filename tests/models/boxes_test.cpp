#include "millrace/models/ops/boxes.h"

#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

TEST(BoxCoder, DecodesEncodedBoxes) {
  const auto proposals = random_boxes(200, 500, 60, 1), boxes = random_boxes(200, 500, 60, 3);
  for (const double offset : {0.0, 1.0})
    for (const auto& weights : {std::array{1.0, 1.0, 1.0, 1.0}, std::array{10.0, 10.0, 5.0, 5.0}}) {
      const BoxCoder coder{.weights = weights, .offset = offset};
      EXPECT_TRUE(
          tensors_close(coder.decode(proposals, coder.encode(proposals, boxes)), boxes, 1e-6));
    }
}

TEST(BoxCoder, ClampsLargeScales) {
  const auto boxes = BoxCoder{}.decode(boxes_of({0, 0, 16, 16}), boxes_of({0, 0, 50, 50}));
  EXPECT_TRUE(tensors_close(boxes, boxes_of({-492, -492, 508, 508}), 1e-6));
}

TEST(BoxCoder, DecodesWithCorrectGradient) {
  const auto proposals = random_boxes(5, 100, 50, 1).to(at::kDouble);
  const auto weights = random_values({5, 8}, -1, 1, 3).to(at::kDouble);
  for (const double offset : {0.0, 1.0}) {
    const BoxCoder coder{{10, 10, 5, 5}, 0.2, offset};  // dw and dh are clipped above 1
    expect_gradient(
        [&](const at::Tensor& deltas) { return (coder.decode(proposals, deltas) * weights).sum(); },
        random_values({5, 8}, -2, 2, 4).to(at::kDouble));
  }
}

TEST(BoxIou, IsZeroForEmptyBoxes) {
  const auto boxes = boxes_of({5, 5, 5, 5, 0, 0, 10, 10});
  EXPECT_TRUE(tensors_equal(box_iou(boxes, boxes), at::tensor({0.F, 0.F, 0.F, 1.F}).view({2, 2})));
  EXPECT_EQ(box_iou(boxes.slice(0, 0, 0), boxes).numel(), 0);
}

TEST(BoxIou, CountsLastPixelForLegacyOffset) {
  const auto boxes = boxes_of({0, 0, 9, 9, 0, 5, 9, 14});
  EXPECT_FLOAT_EQ(box_iou(boxes, boxes, 1)[0][1].item<float>(), 50.F / 150);
}

TEST(BoxIou, DoesNotDependOnThreadCount) {
  const auto a = random_boxes(7, 500, 200, 1), b = random_boxes(5000, 500, 200, 3);
  expect_same_on_any_threads([&] { return std::vector{box_iou(a, b)}; });
}

TEST(ClipBoxes, KeepsBoxesInside) {
  EXPECT_TRUE(
      tensors_equal(clip_boxes(boxes_of({-5, -5, 50, 50, 2, 3, 4, 5}), /*height=*/20, /*width=*/30),
                    boxes_of({0, 0, 30, 20, 2, 3, 4, 5})));
}

}  // namespace
}  // namespace millrace::testing
