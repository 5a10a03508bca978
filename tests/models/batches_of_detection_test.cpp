// The detections in an image do not depend on the other images in its batch.
#include <gmock/gmock.h>

#include <algorithm>
#include <opencv2/core.hpp>

#include "millrace/dataflow/detection/pad.h"
#include "millrace/models/detector/make_detector.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

/// Returns a batch of images of the given sizes, padded to a common multiple of 32.
Batch batch_of(const std::vector<std::pair<std::int32_t, std::int32_t>>& sizes) {
  Batch batch{.divisor = 32};
  for (const auto& [width, height] : sizes) {
    batch.width = std::max(batch.width, (width + 31) / 32 * 32);
    batch.height = std::max(batch.height, (height + 31) / 32 * 32);
    batch.images.push_back({.image_id = std::ssize(batch.images) + 1,
                            .original_width = width,
                            .original_height = height,
                            .width = width,
                            .height = height});
  }
  batch.objects.resize(sizes.size());
  batch.pixels.reset(new std::uint8_t[batch.bytes()]());
  auto* pixel = batch.pixels.get();
  for (const auto& image : batch.images) {
    Rng rng{static_cast<std::uint64_t>(image.image_id)};  // the same pixels in every batch
    for (std::int32_t y = 0; y < batch.height; ++y)
      for (std::int32_t x = 0; x < batch.width * 3; ++x, ++pixel)
        if (y < image.height && x < image.width * 3)
          *pixel = static_cast<std::uint8_t>(rng.below(256));
  }
  return batch;
}

const std::vector<std::pair<std::int32_t, std::int32_t>> kSizes = {{90, 64}, {64, 100},  {96, 50},
                                                                   {40, 40}, {128, 128}, {60, 97}};

/// Returns a batch of only image `i`, padded as for that image alone.
Batch alone(const Batch& whole, std::size_t i) {
  for (auto& [part, places] : split_by_padded_size(whole))
    for (std::size_t k = 0; k < places.size(); ++k)
      if (places[k] == i) return part_of(part, k, 1);
  return {};
}

TEST(BatchParts, ContainEachImageOnceWithOwnPadding) {
  const auto whole = batch_of(kSizes);
  std::vector<std::size_t> seen;
  for (const auto& [part, places] : split_by_padded_size(whole)) {
    ASSERT_EQ(part.size(), places.size());
    for (std::size_t k = 0; k < places.size(); ++k) {
      const auto& image = part.images[k];
      EXPECT_EQ(image.image_id, whole.images[places[k]].image_id);
      EXPECT_EQ((image.width + 31) / 32 * 32, part.width);
      EXPECT_EQ((image.height + 31) / 32 * 32, part.height);
      seen.push_back(places[k]);
      const auto expected =
          batch_of({kSizes.begin(), kSizes.begin() + 1 + std::ptrdiff_t(places[k])});
      EXPECT_EQ(cv::norm(part.image(k), expected.image(places[k]), cv::NORM_INF), 0);
      const auto padding = part.padded_image(k).clone();
      padding(cv::Rect(0, 0, image.width, image.height)).setTo(0);
      EXPECT_EQ(cv::norm(padding, cv::NORM_INF), 0);
    }
  }
  std::ranges::sort(seen);
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(BatchParts, SharePixelsIfAllSizesAreEqual) {
  const auto whole = batch_of({{90, 64}, {96, 50}});
  const auto parts = split_by_padded_size(whole);
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].batch.pixels, whole.pixels);
}

class DetectionInBatches : public ::testing::TestWithParam<SmallKind> {};

std::vector<SmallKind> kinds() {
  auto kinds = small_kinds();
  kinds.push_back(
      {"maskrcnn",
       kFewRegions + "mask.conv_dim = 8\ntest.aug_scales = [0.7, 1.0]\ntest.aug_flip = true\n"});
  kinds.push_back({"fasterrcnn", kFewRegions + "fpn.norm = 'gn'\n"});
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(ByName, DetectionInBatches, ::testing::ValuesIn(kinds()), title_of);

TEST_P(DetectionInBatches, MatchesDetectionImageByImage) {
  const auto model = small_detector(GetParam().name, GetParam().more + kEverything, "gn");
  const auto whole = batch_of(kSizes);
  const auto together = model->detect(whole);
  ASSERT_EQ(together.size(), kSizes.size());
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_objects(together[i], model->detect(alone(whole, i))[0], 1e-5, 1e-2);
  }
}

}  // namespace
}  // namespace millrace::testing
