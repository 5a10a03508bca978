// For valid but unusual input, every detector has finite losses and returns detections inside the
// image, or none.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/isfinite.h>

#include <algorithm>
#include <limits>

#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

/// Keeps detections of any score; the default test.min_size applies.
const std::string kEveryBox = "test.score_thresh = 0.0\ntest.detections_per_img = 20\n";

class DetectorOnOddInput : public ::testing::TestWithParam<SmallKind> {
 protected:
  std::unique_ptr<Detector> detector_ =
      small_detector(GetParam().name, GetParam().more + kEveryBox);

  void expect_finite_loss_and_gradients(const Batch& batch) {
    total_of(detector_->losses(batch, {})).backward();
    for (const auto& [name, value, kind, classes] : detector_->parameters())
      EXPECT_TRUE(!value.grad().defined() || at::isfinite(value.grad()).all().item<bool>()) << name;
  }

  void expect_detections_inside(const Batch& batch) {
    const auto found = detector_->detect(batch);
    ASSERT_EQ(found.size(), batch.size());
    for (std::size_t i = 0; i < found.size(); ++i) expect_inside(found[i], batch.images[i]);
  }
};

INSTANTIATE_TEST_SUITE_P(ByName, DetectorOnOddInput, ::testing::ValuesIn(small_kinds()), title_of);

/// Returns one image of height x width pixels with an object that fills it. As in the data flow,
/// its longer side is limited to 1333 pixels, and it is padded to multiples of 32.
Batch one_image(std::int32_t height, std::int32_t width) {
  const float scale = std::min(1.0F, 1333.0F / static_cast<float>(std::max(height, width)));
  const auto scaled = [&](std::int32_t side) {
    return std::max(1, static_cast<std::int32_t>(static_cast<float>(side) * scale));
  };
  const auto padded = [](std::int32_t side) { return (side + 31) / 32 * 32; };
  const auto w = scaled(width), h = scaled(height);
  Batch batch{.height = padded(h), .width = padded(w)};
  batch.images = {{.original_width = width,
                   .original_height = height,
                   .width = w,
                   .height = h,
                   .scale_x = static_cast<float>(w) / static_cast<float>(width),
                   .scale_y = static_cast<float>(h) / static_cast<float>(height)}};
  batch.pixels.reset(new std::uint8_t[batch.bytes()]());
  const double right = w, bottom = h;
  Instances objects;
  objects.boxes = {{0, 0, static_cast<float>(w), static_cast<float>(h)}};
  objects.classes = {1};
  objects.crowd = {0};
  objects.segmentations = {std::vector<coco::Polygon>{{0, 0, right, 0, right, bottom, 0, bottom}}};
  batch.objects = {objects};
  return batch;
}

TEST_P(DetectorOnOddInput, HandlesVeryLongAndTinyImages) {
  for (const auto& [height, width] : {std::pair{10'000, 20}, {20, 10'000}, {1, 1}}) {
    SCOPED_TRACE(std::to_string(height) + " x " + std::to_string(width));
    const auto batch = one_image(height, width);
    expect_finite_loss_and_gradients(batch);
    expect_detections_inside(batch);
  }
}

TEST_P(DetectorOnOddInput, HandlesObjectsOutsideImage) {
  auto batch = small_batch();
  batch.objects[0].boxes = {{500, 500, 520, 530}, {-300, -300, -280, -200}, {90, 60, 120, 90}};
  batch.objects[0].crowd = {0, 0, 0};
  batch.objects[1].boxes = {{2000, 5, 2100, 55}};
  expect_finite_loss_and_gradients(batch);
}

TEST_P(DetectorOnOddInput, FindsNothingIfWeightsAreNaN) {
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, value, kind, classes] : detector_->parameters())
      at::Tensor(value).fill_(std::numeric_limits<double>::quiet_NaN());
  }
  detector_->parameters_changed();
  for (const auto& image : detector_->detect(small_batch())) EXPECT_TRUE(image.empty());
  auto batch = small_batch();
  for (const bool with_objects : {true, false}) {
    if (!with_objects) batch.objects = {Instances{}, Instances{}};
    for (const auto& [name, loss] : detector_->losses(batch, {}))
      EXPECT_TRUE(loss.defined()) << name;  // NaN, which the trainer reports
  }
}

}  // namespace
}  // namespace millrace::testing
