// In a training step on a device, the host waits and uploads at most six times, whatever the batch.
#include <gmock/gmock.h>

#include <string>
#include <variant>
#include <vector>

#include "millrace/models/detector/device_pixels.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/other_device.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

/// Returns 96 x 64 images; image i has `objects[i]` squares.
Batch squares(const std::vector<int>& objects) {
  Batch batch{.height = 64, .width = 96};
  Rng rng{7};
  for (const int count : objects) {
    batch.images.push_back(
        {.original_width = 96, .original_height = 64, .width = 96, .height = 64});
    auto& own = batch.objects.emplace_back();
    for (int i = 0; i < count; ++i) {
      const auto x = static_cast<float>(rng.uniform(0, 60)),
                 y = static_cast<float>(rng.uniform(0, 30)),
                 side = static_cast<float>(rng.uniform(8, 32));
      own.boxes.push_back({x, y, x + side, y + side});
      own.classes.push_back(static_cast<std::int32_t>(rng.below(3)));
      own.crowd.push_back(0);
      own.segmentations.emplace_back(
          std::vector<coco::Polygon>{{x, y, x + side, y, x + side, y + side, x, y + side}});
    }
  }
  batch.pixels.reset(new std::uint8_t[batch.bytes()]);
  for (std::size_t i = 0; i < batch.bytes(); ++i)
    batch.pixels[i] = static_cast<std::uint8_t>(rng.below(256));
  return batch;
}

/// The number of objects in each image of each batch.
const std::vector<std::vector<int>> kBatches = {
    {0}, {3, 0}, {40, 2, 0, 1}, {1, 2, 3, 4, 0, 6, 7, 25}};

std::string causes(const Traffic& traffic) {
  std::string text;
  for (const auto& [cause, count] : traffic.waits_by)
    text += " " + cause + " " + std::to_string(count);
  return text;
}

/// Returns the traffic of one step per batch.
std::vector<Traffic> traffic_of_steps(const SmallKind& kind, const std::vector<Batch>& batches) {
  const at::Device there(kOtherDevice, 0);
  const auto model = small_detector(kind.name, kind.more, "frozen_bn", there);
  TrainingStep step(*model, {}, {}, Cluster::alone());
  LossScale scale;
  std::vector<Traffic> result;
  for (auto batch : batches) {
    batch.on_device = copied_ahead(batch, c10::Stream(c10::Stream::UNSAFE, there, /*id=*/1));
    Metrics metrics;
    take_traffic();
    step({&batch, 1}, {.seed = 3, .step = std::ssize(result), .metrics = &metrics}, 0.01, scale);
    result.push_back(take_traffic());
  }
  return result;
}

class Waits : public ::testing::TestWithParam<SmallKind> {};

TEST_P(Waits, AreAtMostSixPerStep) {
  std::vector<Batch> batches;
  for (const auto& objects : kBatches) batches.push_back(squares(objects));
  const auto traffic = traffic_of_steps(GetParam(), batches);
  for (std::size_t i = 0; i < traffic.size(); ++i) {
    EXPECT_LE(traffic[i].waits(), 6) << causes(traffic[i]);
    EXPECT_LE(traffic[i].uploads, 6);
    EXPECT_EQ(traffic[i].waits_by.count("upload"), 0U) << "uploads must not wait";
    // Without objects, a step that makes masks on the host waits less often.
    EXPECT_LE(traffic[i].waits(), traffic.back().waits()) << causes(traffic[i]);
  }
}

TEST(WaitsForMasks, AreAtMostSixForRleMasks) {
  auto batch = squares({5, 5, 5, 5});
  for (auto& objects : batch.objects) {
    const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&objects.segmentations[0]);
    objects.segmentations[0] = coco::from_polygons(*polygons, 64, 96);
    objects.segmentations[1] = std::monostate();
  }
  for (const auto* target : {"binary", "soft"}) {
    const auto traffic = traffic_of_steps(
        {"maskrcnn", kFewRegions + "mask.conv_dim = 8\nmask.target = '" + target + "'\n"}, {batch});
    EXPECT_LE(traffic[0].waits(), 6) << causes(traffic[0]);
    EXPECT_EQ(traffic[0].waits_by.count("upload"), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Detectors, Waits,
    ::testing::Values(SmallKind{"maskrcnn", kFewRegions + "mask.conv_dim = 8\n"},
                      SmallKind{"fasterrcnn", kFewRegions}, SmallKind{"cascadercnn", kFewRegions},
                      SmallKind{"cascadercnn", kFewRegions + "masks = true\nmask.conv_dim = 8\n"},
                      SmallKind{"retinanet", ""}),
    title_of);

}  // namespace
}  // namespace millrace::testing
