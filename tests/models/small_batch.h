// A batch of generated pixels and objects, and small detectors.
#pragma once

#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/random.h"
#include "millrace/models/detector/detector.h"
#include "millrace/models/weights/safetensors.h"
#include "tests/support/tensors.h"

namespace millrace::testing {

/// Returns two images of 96 x 64 and 80 x 60 pixels, with three objects and one crowd.
inline Batch small_batch() {
  Batch batch{.height = 64, .width = 96};
  for (const auto& [width, height] : {std::pair{96, 64}, {80, 60}})
    batch.images.push_back({.original_width = 2 * width,
                            .original_height = 2 * height,
                            .width = width,
                            .height = height,
                            .scale_x = 0.5F,
                            .scale_y = 0.5F});
  batch.pixels.reset(new std::uint8_t[batch.bytes()]());
  Rng rng{1};
  for (std::int32_t i = 0; i < 2; ++i)
    for (std::int32_t y = 0; y < batch.images[static_cast<std::size_t>(i)].height; ++y)
      for (std::int32_t x = 0; x < batch.images[static_cast<std::size_t>(i)].width * 3; ++x)
        batch.pixels[static_cast<std::size_t>((i * 64 + y) * 96 * 3 + x)] =
            static_cast<std::uint8_t>(rng.below(256));
  const auto square = [](float x, float y, float side) {
    return coco::Segmentation(
        std::vector<coco::Polygon>{{x, y, x + side, y, x + side, y + side, x, y + side}});
  };
  Instances first, second;
  first.boxes = {{10, 10, 40, 40}, {50, 20, 80, 50}, {0, 0, 96, 20}};
  first.classes = {0, 2, 1};
  first.crowd = {0, 0, 1};
  first.segmentations = {square(10, 10, 30), square(50, 20, 30), square(0, 0, 20)};
  second.boxes = {{20, 5, 70, 55}};
  second.classes = {1};
  second.crowd = {0};
  second.segmentations = {square(20, 5, 50)};
  batch.objects = {first, second};
  return batch;
}

/// Returns `count` images of the batch, beginning with image `first`, at the same padded size.
inline Batch part_of(const Batch& whole, std::size_t first, std::size_t count) {
  Batch part{.height = whole.height, .width = whole.width};
  const auto bytes =
      static_cast<std::size_t>(whole.height) * static_cast<std::size_t>(whole.width) * 3;
  part.pixels = {whole.pixels, whole.pixels.get() + first * bytes};
  const auto from = static_cast<std::ptrdiff_t>(first),
             to = static_cast<std::ptrdiff_t>(first + count);
  part.images.assign(whole.images.begin() + from, whole.images.begin() + to);
  part.objects.assign(whole.objects.begin() + from, whole.objects.begin() + to);
  return part;
}

inline std::vector<Batch> parts_of(const Batch& whole, std::size_t size) {
  std::vector<Batch> parts;
  for (std::size_t first = 0; first < whole.size(); first += size)
    parts.push_back(part_of(whole, first, size));
  return parts;
}

/// Returns the images of small_batch() twice; the third image has no objects.
inline Batch four_images() {
  const auto two = small_batch();
  Batch four{.height = two.height, .width = two.width};
  four.pixels.reset(new std::uint8_t[2 * two.bytes()]);
  for (std::size_t i = 0; i < 2 * two.bytes(); ++i) four.pixels[i] = two.pixels[i % two.bytes()];
  for (std::size_t i = 0; i < 4; ++i) {
    four.images.push_back(two.images[i % 2]);
    four.objects.push_back(two.objects[i % 2]);
  }
  four.objects[2] = {};
  std::swap(four.objects[1], four.objects[3]);
  return four;
}

/// Returns a detector with a narrow network. `more` has further lines of its [model] table. The
/// detector "centers", from examples/my_detector, has no anchors.
inline std::unique_ptr<Detector> small_detector(const std::string& name,
                                                const std::string& more = {},
                                                const std::string& norm = "bn",
                                                at::Device device = at::kCPU) {
  const auto unless = [&](const char* said, const std::string& lines) {
    return more.find(said) < more.size() ? "" : lines;
  };
  const auto table =
      parse_config(unless("backbone.type", "backbone.type = 'resnet18'\nbackbone.width = 16\n") +
                       unless("backbone.norm", "backbone.norm = '" + norm + "'\n") +
                       unless("'c4'", "fpn.out_channels = 16\n") +
                       unless("freeze_at", "backbone.freeze_at = 0\n") +
                       (name == "centers" ? "" : "anchors.sizes = [8, 16, 32, 48, 64]\n") +
                       "pixel_std = [57.0, 57.0, 57.0]\n" + more,
                   "small.toml");
  return detectors().at(name).create(table, {{"star", "ring", "disc"}, 1, device});
}

/// A detector type and further lines of its [model] table.
struct SmallKind {
  std::string name, more;
  friend void PrintTo(const SmallKind& one, std::ostream* out) {
    *out << one.name << " " << one.more;
  }
};

inline std::string title_of(const ::testing::TestParamInfo<SmallKind>& one) {
  return one.param.name + std::to_string(one.index);
}

inline const std::string kFewRegions =
    "rpn.post_nms_top_n_train = 40\nroi.batch_size_per_image = 32\nbox.fc_dim = 32\n";
/// Few regions in training, and few proposals in detection too.
inline const std::string kFewProposals = kFewRegions + "rpn.post_nms_top_n_test = 40\n";
/// Few regions and proposals for heads on C4.
inline const std::string kFewOnC4 =
    "backbone.out = 'c4'\nrpn.post_nms_top_n_train = 40\nrpn.post_nms_top_n_test = 40\n"
    "roi.batch_size_per_image = 32\n";
/// Options that keep many detections from an untrained network.
inline const std::string kEverything =
    "test.score_thresh = 0.0\ntest.detections_per_img = 20\ntest.min_size = 0.1\n";

inline std::vector<SmallKind> small_kinds() {
  return {{"maskrcnn", kFewRegions + "mask.conv_dim = 8\n"},
          {"maskrcnn",
           kFewRegions + "mask.conv_dim = 8\nstyle = 'torchvision'\nbox.label_smoothing = 0.1\n"},
          {"cascadercnn", kFewRegions + "masks = true\nmask.conv_dim = 8\n"},
          {"retinanet", ""},
          {"retinanet", "style = 'torchvision'\n"}};
}

/// Returns copies of all parameter values.
inline NamedTensors copies_of(const Detector& model) {
  NamedTensors copies;
  for (const auto& parameter : model.parameters())
    copies.emplace_back(parameter.name, parameter.value.detach().clone());
  return copies;
}

inline void expect_same(const NamedTensors& values, const NamedTensors& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_TRUE(tensors_equal(values[i].second, expected[i].second)) << values[i].first;
}

/// Returns the sum of the losses; expects each to be finite.
inline at::Tensor total_of(const Losses& losses) {
  at::Tensor total;
  for (const auto& [name, loss] : losses) {
    EXPECT_TRUE(std::isfinite(loss.item<double>())) << name;
    total = total.defined() ? total + loss : loss;
  }
  return total;
}

inline void expect_inside(const std::vector<DetectedObject>& found, const ImageInfo& image) {
  for (const auto& object : found) {
    EXPECT_GE(object.box.x1, 0);
    EXPECT_GE(object.box.y1, 0);
    EXPECT_LE(object.box.x2, static_cast<float>(image.original_width));
    EXPECT_LE(object.box.y2, static_cast<float>(image.original_height));
  }
}

inline void expect_same_objects(const std::vector<DetectedObject>& found,
                                const std::vector<DetectedObject>& expected, double score = 0,
                                double pixels = 0) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto &is = found[i].box, &box = expected[i].box;
    EXPECT_EQ(found[i].label, expected[i].label);
    EXPECT_NEAR(found[i].score, expected[i].score, score);
    EXPECT_NEAR(is.x1, box.x1, pixels);
    EXPECT_NEAR(is.y1, box.y1, pixels);
    EXPECT_NEAR(is.x2, box.x2, pixels);
    EXPECT_NEAR(is.y2, box.y2, pixels);
  }
}

}  // namespace millrace::testing
