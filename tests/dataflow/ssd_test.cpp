#include "millrace/dataflow/stages/ssd.h"

#include <gmock/gmock.h>

#include <set>

#include "millrace/dataflow/stages/multi_scale.h"
#include "tests/dataflow/samples.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

TEST(PhotometricDistort, KeepsImageForProbabilityZero) {
  Rng rng{1};
  const auto before = sample_of(20, 10);
  const auto after = PhotometricDistort{.probability = 0}(sample_of(20, 10), rng);
  EXPECT_EQ(cv::norm(before.image.pixels(), after.image.pixels()), 0);
}

TEST(PhotometricDistort, DrawsWithinRangesAndChannelOrders) {
  const PhotometricDistort stage{.probability = 1};
  std::set<std::array<int, 3>> orders;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng rng{1, i};
    const auto drawn = stage.draw(rng);
    EXPECT_NEAR(drawn.brightness, 1, 0.125);
    EXPECT_NEAR(drawn.contrast, 1, 0.5);
    EXPECT_NEAR(drawn.saturation, 1, 0.5);
    EXPECT_NEAR(drawn.hue, 0, 0.05);
    orders.insert(drawn.channels);
  }
  EXPECT_EQ(orders.size(), 6U);
}

TEST(ZoomOut, KeepsImageAndObjectsOnCanvas) {
  for (std::uint64_t i = 0; i < 50; ++i) {
    Rng rng{1, i}, again{1, i};
    const ZoomOut stage{.probability = 1, .fill = 9};
    again.chance(1);
    const auto window = stage.draw({20, 10}, again);
    const auto sample = stage(sample_of(20, 10, {4, 2, 8, 6}), rng);
    EXPECT_EQ(sample.image.size(), window.size());
    const float x = static_cast<float>(-window.x), y = static_cast<float>(-window.y);
    ASSERT_EQ(sample.objects.size(), 1U);
    EXPECT_EQ(sample.objects.boxes[0], (Box{4 + x, 2 + y, 8 + x, 6 + y}));
    const auto inside = cv::Rect({-window.x, -window.y}, cv::Size(20, 10));
    EXPECT_EQ(cv::norm(sample.image.pixels()(inside), sample_of(20, 10).image.pixels()), 0);
    if (window.x < 0) {
      EXPECT_EQ(sample.image.pixels().at<cv::Vec3b>(0, 0), cv::Vec3b(9, 9, 9));
    }
  }
}

TEST(IouCrop, KeepsObjectsCentredInWindow) {
  int cut = 0;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng rng{1, i};
    auto sample = sample_of(60, 40, {5, 5, 25, 25});
    append(sample.objects, {{{30, 10, 58, 38}}, {1}, {0}, {coco::Segmentation{}}});
    const auto cropped = IouCrop{.probability = 1}(std::move(sample), rng);
    ASSERT_GE(cropped.objects.size(), 1U);
    const auto size = cropped.image.size();
    cut += size != cv::Size(60, 40);
    const double ratio = static_cast<double>(size.width) / size.height;
    EXPECT_TRUE(ratio >= 0.5 && ratio <= 2) << size;
    for (const auto& box : cropped.objects.boxes) {
      EXPECT_GE(box.x1, 0);
      EXPECT_LE(box.x2, static_cast<float>(size.width));
      EXPECT_GT(box.area(), 0);
    }
  }
  EXPECT_GT(cut, 100);
}

TEST(IouCrop, KeepsImageIfNoCropFits) {
  Rng rng{1};
  auto empty = sample_of(60, 40);
  empty.objects = {};
  EXPECT_EQ(IouCrop{.probability = 1}(std::move(empty), rng).image.size(), cv::Size(60, 40));
  const IouCrop never{.probability = 1, .min_iou = {1}};
  EXPECT_EQ(never(sample_of(60, 40), rng).image.size(), cv::Size(60, 40));
}

TEST(MultiScale, ResizesBatchToOneSquare) {
  std::set<int> sides;
  for (std::uint64_t i = 0; i < 100; ++i) {
    Rng rng{1, i};
    const auto group = MultiScale{{32, 64}}({sample_of(20, 10), sample_of(10, 40)}, rng);
    ASSERT_EQ(group.size(), 2U);
    EXPECT_EQ(group[0].image.size(), group[1].image.size());
    EXPECT_EQ(group[0].image.size().width, group[0].image.size().height);
    EXPECT_EQ(group[1].scale_y * 40, static_cast<float>(group[1].image.size().height));
    sides.insert(group[0].image.size().width);
  }
  EXPECT_THAT(sides, ElementsAre(32, 64));
}

}  // namespace
}  // namespace millrace::testing
