#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <opencv2/core.hpp>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/image/buffer_pool.h"
#include "millrace/dataflow/stages/filter.h"
#include "millrace/dataflow/stages/geometric.h"
#include "millrace/dataflow/stages/group_by_aspect_ratio.h"
#include "tests/dataflow/samples.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

TEST(Decode, ReportsMissingFile) {
  Sample sample;
  sample.path = "no/such/picture.jpg";
  EXPECT_THAT([&] { Decode{}(sample); },
              ThrowsMessage<DataError>(HasSubstr("no/such/picture.jpg")));
}

TEST(Flip, MirrorsPixelsAndBoxes) {
  Rng rng{1};
  const auto sample = [] { return sample_of(100, 50, {10, 5, 30, 25}); };
  auto flipped = Flip{.probability = 1}(sample(), rng);
  EXPECT_EQ(flipped.objects.boxes[0], (Box{70, 5, 90, 25}));
  EXPECT_EQ(flipped.image.pixels().at<cv::Vec3b>(3, 0), (cv::Vec3b{100, 4, 255}));
  flipped = Flip{.probability = 1, .direction = Direction::vertical}(sample(), rng);
  EXPECT_EQ(flipped.objects.boxes[0], (Box{10, 25, 30, 45}));
  EXPECT_EQ(flipped.image.pixels().at<cv::Vec3b>(0, 3), (cv::Vec3b{4, 50, 255}));
}

TEST(Flip, FlipsWithGivenProbability) {
  int flips = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Rng rng{5, i};
    const auto sample = Flip{.probability = 0.25}(sample_of(4, 4), rng);
    flips += sample.image.pixels().at<cv::Vec3b>(0, 0)[0] != 1;
  }
  EXPECT_NEAR(flips, 500, 60);
}

/// The expected values are those of detectron2's ResizeShortestEdge.get_output_shape.
TEST(ResizeShortestEdge, MatchesDetectron2Rounding) {
  EXPECT_EQ(shortest_edge_size({640, 480}, 800, 1333), cv::Size(1067, 800));
  EXPECT_EQ(shortest_edge_size({480, 640}, 800, 1333), cv::Size(800, 1067));
  EXPECT_EQ(shortest_edge_size({640, 427}, 800, 1333), cv::Size(1199, 800));
  EXPECT_EQ(shortest_edge_size({640, 360}, 800, 1333), cv::Size(1333, 750));
  EXPECT_EQ(shortest_edge_size({333, 333}, 800, 1333), cv::Size(800, 800));
  EXPECT_EQ(shortest_edge_size({3000, 9}, 800, 1333), cv::Size(1333, 4));
  EXPECT_EQ(shortest_edge_size({3000, 1}, 800, 1333), cv::Size(1333, 1));
}

TEST(ResizeShortestEdge, ResizesObjectsAndScales) {
  Rng rng{1};
  const ResizeShortestEdge stage{.short_side = {40}, .max_side = 1000};
  const auto sample = stage(sample_of(40, 20, {4, 2, 8, 6}), rng);
  EXPECT_EQ(sample.image.size(), cv::Size(80, 40));
  EXPECT_EQ(sample.objects.boxes[0], (Box{8, 4, 16, 12}));
  EXPECT_EQ(sample.scale_x, 2);
  EXPECT_EQ(sample.scale_y, 2);
}

TEST(ResizeShortestEdge, MatchesTorchvisionStyle) {
  Rng rng{1};
  auto sample = sample_of(320, 240, {8, 8, 16, 16});
  sample.objects.segmentations = {std::vector<coco::Polygon>{{8, 8, 16, 8, 16, 16, 8, 16}}};
  const ResizeShortestEdge stage{
      .short_side = {200}, .max_side = 300, .style = ResizeStyle::torchvision};
  const auto resized = stage(std::move(sample), rng);
  EXPECT_EQ(resized.image.size(), cv::Size(266, 200));  // rounded down from 266.67
  const auto& mask = std::get<coco::Rle>(resized.objects.segmentations[0]);
  EXPECT_EQ(mask.width, 266U);
  EXPECT_EQ(mask.height, 200U);
}

TEST(ResizeShortestEdge, MatchesYoloxStyle) {
  Rng rng{1};
  auto sample = sample_of(320, 240, {8, 8, 16, 16});
  sample.objects.segmentations = {std::vector<coco::Polygon>{{8, 8, 16, 8, 16, 16, 8, 16}}};
  const ResizeShortestEdge stage{.short_side = {200}, .max_side = 300, .style = ResizeStyle::yolox};
  const auto resized = stage(std::move(sample), rng);
  EXPECT_EQ(resized.image.size(), cv::Size(266, 200));  // rounded down from 266.67
  EXPECT_TRUE(std::holds_alternative<std::vector<coco::Polygon>>(resized.objects.segmentations[0]));
}

TEST(ResizeShortestEdge, MatchesDetectron2Style) {
  Rng rng{1};
  ResizeShortestEdge stage{.short_side = {50}, .max_side = 300, .style = ResizeStyle::detectron2};
  EXPECT_EQ(decode_for(stage, /*reduced=*/true).short_side, 0);
  const auto resized = stage(sample_of(320, 240, {8, 8, 16, 16}), rng);
  EXPECT_EQ(resized.image.size(), cv::Size(67, 50));  // rounded up from 66.67
  EXPECT_EQ(resized.image.resampling(), Resampling::pillow);
  stage.style = ResizeStyle::opencv;
  EXPECT_EQ(decode_for(stage, /*reduced=*/true).short_side, 50);
  const auto sampled = stage(sample_of(320, 240, {8, 8, 16, 16}), rng);
  EXPECT_EQ(sampled.image.size(), resized.image.size());
  EXPECT_EQ(sampled.image.resampling(), Resampling::opencv);
}

TEST(ResizeShortestEdge, MakesSquaresFromAnyShape) {
  Rng rng{1};
  const ResizeShortestEdge stage{.short_side = {40}, .max_side = 30, .style = ResizeStyle::square};
  const auto sample = stage(sample_of(80, 20, {4, 2, 8, 6}), rng);
  EXPECT_EQ(sample.image.size(), cv::Size(40, 40));
  EXPECT_EQ(sample.objects.boxes[0], (Box{2, 4, 4, 12}));
  EXPECT_EQ(sample.scale_x, 0.5F);
  EXPECT_EQ(sample.scale_y, 2);
}

TEST(ResizeShortestEdge, DrawsChoicesAndRanges) {
  std::set<int> choices, range;
  for (std::uint64_t i = 0; i < 200; ++i) {
    Rng one{1, i}, two{1, i};
    choices.insert(
        ResizeShortestEdge{{10, 15}, false, 99}(sample_of(20, 20), one).image.size().height);
    range.insert(
        ResizeShortestEdge{{10, 15}, true, 99}(sample_of(20, 20), two).image.size().height);
  }
  EXPECT_THAT(choices, ElementsAre(10, 15));
  EXPECT_THAT(range, ElementsAre(10, 11, 12, 13, 14, 15));
}

TEST(ResizeShortestEdge, RejectsInvalidRange) {
  EXPECT_THROW((ResizeShortestEdge{.short_side = {40}, .range = true}.check()),
               std::invalid_argument);
  EXPECT_THROW((ResizeShortestEdge{.short_side = {50, 40}, .range = true}.check()),
               std::invalid_argument);
}

TEST(GroupByAspectRatio, CountsBoundsBelowRatio) {
  const GroupByAspectRatio two, three{.bounds = {0.8, 1.25}}, one{.bounds = {}};
  EXPECT_EQ(two.groups(), 2U);
  EXPECT_EQ(two(sample_of(40, 20)), 1U);
  EXPECT_EQ(two(sample_of(20, 20)), 0U);
  EXPECT_EQ(three(sample_of(20, 20)), 1U);
  EXPECT_EQ(three(sample_of(20, 40)), 0U);
  EXPECT_EQ(one(sample_of(40, 20)), 0U);
}

/// Returns the padded area if images are scaled to a shorter side of 1 and each image is padded to
/// the largest width and height in its group.
double padding(const std::vector<cv::Size>& shapes, const std::vector<double>& bounds) {
  struct Group {
    double width = 0, height = 0, images = 0, area = 0;
  };
  std::map<std::size_t, Group> groups;
  for (const auto& shape : shapes) {
    const double ratio = static_cast<double>(shape.width) / shape.height;
    const double width = std::max(1.0, ratio), height = std::max(1.0, 1 / ratio);
    auto& group = groups[static_cast<std::size_t>(
        std::ranges::count_if(bounds, [&](double bound) { return ratio > bound; }))];
    group.width = std::max(group.width, width);
    group.height = std::max(group.height, height);
    group.images += 1;
    group.area += width * height;
  }
  double sum = 0;
  for (const auto& [key, group] : groups)
    sum += group.images * group.width * group.height - group.area;
  return sum;
}

std::vector<cv::Size> random_shapes(Rng& rng, int count) {
  std::vector<cv::Size> shapes;
  for (int i = 0; i < count; ++i)
    shapes.emplace_back(static_cast<int>(rng.between(40, 200)),
                        static_cast<int>(rng.between(40, 200)));
  return shapes;
}

TEST(RatioBounds, MinimisePadding) {
  Rng rng{4};
  for (int round = 0; round < 50; ++round) {
    const auto shapes = random_shapes(rng, 12);
    std::vector<double> ratios;
    for (const auto& shape : shapes) ratios.push_back(double(shape.width) / shape.height);
    double least = std::numeric_limits<double>::max();
    for (const double a : ratios)
      for (const double b : ratios)
        least = std::min(least, padding(shapes, {std::min(a, b), std::max(a, b)}));
    EXPECT_NEAR(padding(shapes, ratio_bounds(shapes, 3)), least, 1e-9) << "round " << round;
  }
}

TEST(RatioBounds, AreEmptyForOneGroupOrShape) {
  Rng rng{5};
  EXPECT_TRUE(ratio_bounds(random_shapes(rng, 30), 1).empty());
  EXPECT_TRUE(ratio_bounds(std::vector(30, cv::Size(640, 480)), 4).empty());
}

TEST(RatioBounds, PadLessWithMoreGroups) {
  Rng rng{6};
  const auto shapes = random_shapes(rng, 3000);
  double before = padding(shapes, {});
  for (std::size_t buckets = 2; buckets < 10; ++buckets) {
    const auto bounds = ratio_bounds(shapes, buckets);
    EXPECT_LT(bounds.size(), buckets);
    EXPECT_TRUE(std::ranges::is_sorted(bounds));
    const double now = padding(shapes, bounds);
    EXPECT_LE(now, before) << buckets << " buckets";
    before = now;
  }
}

TEST(ShapeBuckets, ReducePaddingOfRealPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  auto options = coco_mini({80}, 133);
  options.divisor = 1;
  const auto wasted = [&](std::int64_t buckets) {
    options.aspect_grouping = false;
    options.shape_buckets = buckets;
    const auto flow = train_flow(options);
    double used = 0, all = 0;
    for (int i = 0; i < 100; ++i) {
      const auto batch = flow->next()->value;
      all += static_cast<double>(batch.bytes());
      for (const auto& image : batch.images) used += 3.0 * image.width * image.height;
    }
    return 1 - used / all;
  };
  const double one = wasted(0), two = wasted(2), six = wasted(6);
  EXPECT_LT(two, 0.6 * one);
  EXPECT_LT(six, 0.6 * two);
}

TEST(Filter, PassesLargeImagesWithEnoughObjects) {
  auto sample = sample_of(20, 10, {1, 2, 5, 9});
  EXPECT_TRUE(Filter{}(sample));
  EXPECT_TRUE((Filter{.min_objects = 1, .min_object_side = 4, .min_side = 10}(sample)));
  EXPECT_FALSE((Filter{.min_side = 11}(sample)));
  EXPECT_FALSE((Filter{.min_objects = 2}(sample)));
  EXPECT_FALSE((Filter{.min_objects = 1, .min_object_side = 4.5}(sample)));
  sample.objects.crowd[0] = 1;
  EXPECT_FALSE((Filter{.min_objects = 1}(sample))) << "a crowd does not count";
}

TEST(Pad, PadsImagesWithZeros) {
  const Pad pad{.divisor = 8};
  { std::memset(batch_memory().acquire(1).get(), 77, 1); }  // fills the buffer that is reused below
  const auto batch = pad({sample_of(9, 5), sample_of(3, 12)});
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(batch.width, 16);
  EXPECT_EQ(batch.height, 16);
  for (std::size_t n = 0; n < 2; ++n)
    for (int y = 0; y < 16; ++y)
      for (int x = 0; x < 16; ++x) {
        const auto* pixel = batch.pixels.get() + ((n * 16 + y) * 16 + x) * 3;
        const bool inside = x < batch.images[n].width && y < batch.images[n].height;
        ASSERT_EQ(pixel[0], inside ? x + 1 : 0) << n << " " << x << " " << y;
        ASSERT_EQ(pixel[1], inside ? y + 1 : 0);
        ASSERT_EQ(pixel[2], inside ? 255 : 0);
      }
  EXPECT_EQ(batch.images[1].image_id, 7);
  EXPECT_EQ(batch.objects[1].boxes[0], (Box{1, 2, 3, 4}));
}

TEST(Pad, ChoosesSmallestFittingShape) {
  const Pad pad{.shapes = {"32x32", "16x8", "8x16"}};
  const auto shape = [&](int width, int height) {
    const auto batch = pad({sample_of(width, height), sample_of(3, 3)});
    return std::pair(batch.width, batch.height);
  };
  EXPECT_EQ(shape(16, 8), std::pair(16, 8));
  EXPECT_EQ(shape(5, 9), std::pair(8, 16));
  EXPECT_EQ(shape(9, 9), std::pair(32, 32));
  EXPECT_THAT([&] { shape(33, 3); },
              ThrowsMessage<ConfigError>(
                  AllOf(HasSubstr("33 x 3 pixels"), HasSubstr("none of the shapes 32x32, 16x8"))));
}

TEST(Pad, RejectsInvalidShape) {
  for (const auto* text : {"1344", "800x", "0x5", "8x8x8", "wide", "99999x1"})
    EXPECT_THROW(Pad{.shapes = {text}}.check(), std::invalid_argument) << text;
}

TEST(Digest, CoversEveryPartOfBatch) {
  const auto batch = [] { return Pad{}({sample_of(9, 5), sample_of(3, 12)}); };
  void (*const changes[])(Batch&) = {
      [](Batch& b) { b.pixels[100] ^= 1; },
      [](Batch& b) { b.images[1].scale_y = 2; },
      [](Batch& b) { b.objects[1].boxes[0].x1 += 1; },
      [](Batch& b) { b.objects[0].crowd[0] = 1; },
      [](Batch& b) {
        b.objects[0].segmentations[0] = std::vector<coco::Polygon>{{1, 2, 3, 4, 5, 6}};
      },
      [](Batch& b) {
        b.objects[0].segmentations[0] = coco::Rle{2, 2, {4}};
      }};
  std::set<std::uint64_t> seen{digest(batch())};
  EXPECT_EQ(digest(batch()), *seen.begin());
  for (const auto change : changes) {
    auto changed = batch();
    change(changed);
    EXPECT_TRUE(seen.insert(digest(changed)).second) << "change " << seen.size();
  }
}

}  // namespace
}  // namespace millrace
