#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "millrace/base/random.h"
#include "millrace/dataflow/detection/data_split.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/stages/group_by_aspect_ratio.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

/// Padding of images of shorter side 1, each padded to the largest of its group.
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

TEST(RatioBounds, PadNoMoreThanAnyOtherTwoCuts) {
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

TEST(RatioBounds, AreNoneForOneGroupOrOneShape) {
  Rng rng{5};
  EXPECT_TRUE(ratio_bounds(random_shapes(rng, 30), 1).empty());
  EXPECT_TRUE(ratio_bounds(std::vector(30, cv::Size(640, 480)), 4).empty());
}

TEST(RatioBounds, PartWideFromTall) {
  const std::vector<cv::Size> shapes = {{640, 480}, {480, 640}, {640, 480}, {640, 427}, {427, 640}};
  const auto bounds = ratio_bounds(shapes, 2);
  ASSERT_EQ(bounds.size(), 1U);
  EXPECT_GT(bounds[0], 0.75);
  EXPECT_LT(bounds[0], 4.0 / 3);
}

TEST(RatioBounds, NeverPadMoreForMoreGroupsHoweverManyImages) {
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

TEST(ShapeBuckets, WasteLessOfBatchesOfRealPhotos) {
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

}  // namespace
}  // namespace millrace
