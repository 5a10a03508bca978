// Images of one pixel, and of ten thousand by twenty, are images like others.
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "base/config.h"
#include "trainer/detector.h"

namespace millrace {
namespace {

constexpr const char* kTiny = R"(
name = "maskrcnn"
backbone = "resnet18"
width = 8
norm = "bn"
freeze_at = 0
fpn_channels = 16
fpn_norm = "bn"
box_channels = 16
mask_channels = 8
mask_convs = 1
rpn_pre_nms_train = 100
rpn_post_nms_train = 50
score_threshold = 0.0
)";

std::unique_ptr<Detector> tiny_detector() {
  return detectors().at("maskrcnn").create(parse_config(kTiny, "tiny"), {{"one", "two"}, 1});
}

std::int32_t padded(std::int32_t side) { return (side + 31) / 32 * 32; }

/// One image with an object that fills it, as the flow would hand it over.
Batch one_image(std::int32_t width, std::int32_t height) {
  Batch batch;
  batch.width = padded(width), batch.height = padded(height);
  const auto bytes =
      static_cast<std::size_t>(batch.width) * static_cast<std::size_t>(batch.height) * 3;
  batch.pixels = std::shared_ptr<std::uint8_t[]>(new std::uint8_t[bytes]);
  for (std::size_t i = 0; i < bytes; ++i) batch.pixels[i] = static_cast<std::uint8_t>(i * 37 % 251);
  batch.images = {{.image_id = 1,
                   .original_width = width,
                   .original_height = height,
                   .width = width,
                   .height = height}};
  const auto right = static_cast<float>(width), below = static_cast<float>(height);
  Instances objects;
  objects.boxes = {{0, 0, right, below}};
  objects.classes = {1};
  objects.crowd = {0};
  objects.segmentations = {std::vector<coco::Polygon>{{0, 0, right, 0, right, below, 0, below}}};
  batch.objects = {objects};
  return batch;
}

class OddImages : public ::testing::TestWithParam<std::pair<std::int32_t, std::int32_t>> {};

TEST_P(OddImages, GiveFiniteLossesGradientsAndDetectionsInsideThem) {
  const auto [width, height] = GetParam();
  const auto detector = tiny_detector();
  const auto batch = one_image(width, height);
  at::Tensor total;
  for (const auto& [name, loss] : detector->losses(batch, {})) {
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
    total = total.defined() ? total + loss : loss;
  }
  total.backward();
  for (const auto& parameter : detector->parameters()) {
    const auto& gradient = parameter.value.grad();
    EXPECT_TRUE(!gradient.defined() || gradient.isfinite().all().item<bool>()) << parameter.name;
  }
  for (const auto& object : detector->detect(batch).at(0)) {
    EXPECT_GE(object.box.x1, 0);
    EXPECT_GE(object.box.y1, 0);
    EXPECT_LE(object.box.x2, width);
    EXPECT_LE(object.box.y2, height);
    EXPECT_EQ(object.mask.height, static_cast<std::uint32_t>(height));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, OddImages,
                         ::testing::Values(std::pair(1, 1), std::pair(10000, 20),
                                           std::pair(20, 10000), std::pair(33, 1)));

}  // namespace
}  // namespace millrace
