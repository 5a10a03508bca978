// Statistics of a source's objects: sizes after resizing, without crowds.
#include "millrace/tools/data/object_statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <cmath>
#include <numeric>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

/// 3000 images of 200 x 100 pixels. One third has no object, one third has a square of class 0, and
/// one third has the square, an upright box of class 1 without a shape, and a crowd of class 0. One
/// image cannot be read, and one has no size.
class MadeSource final : public Source<Sample> {
 public:
  std::int64_t size() const override { return 3000; }
  Sample operator[](std::int64_t index) const override {
    Sample sample{.image_id = 7 * index, .width = 200, .height = 100};
    if (index == 2999) throw DataError("a.jpg", "cannot be read");
    if (index == 2998) sample.width = sample.height = 0;
    const auto add = [&](Box box, int label, bool crowd, bool shape) {
      sample.objects.boxes.push_back(box);
      sample.objects.classes.push_back(label);
      sample.objects.crowd.push_back(crowd);
      sample.objects.segmentations.emplace_back();
      if (shape) sample.objects.segmentations.back() = std::vector<coco::Polygon>();
    };
    if (index % 3 > 0) add({10, 10, 20, 20}, 0, false, true);
    if (index % 3 > 1) {
      add({50, 0, 60, 40}, 1, false, false);
      add({0, 0, 200, 100}, 0, true, true);
    }
    return sample;
  }
};

cv::Size doubled(cv::Size size) { return size * 2; }

SizeCounts size_counts(const SeenData& data) {
  SizeCounts counts{};
  for (const double size : values(data, &SeenObject::size)) ++counts[size_kind(size)];
  return counts;
}

TEST(SeenData, ResizesObjectsAndCountsOmittedImages) {
  const auto data = seen_data(MadeSource(), {"cat", "dog"}, doubled);
  EXPECT_EQ(data.images.size(), 2998U);
  EXPECT_EQ(data.without_size, 1);
  EXPECT_EQ(data.unreadable, 1);
  EXPECT_EQ(data.objects_of(data.images[0]).size(), 0U);
  const auto& image = data.images[2];
  EXPECT_EQ(image.image_id, 14);
  EXPECT_EQ(image.sample, 2);
  EXPECT_EQ(image.original, cv::Size(200, 100));
  EXPECT_EQ(image.seen, cv::Size(400, 200));
  const auto own = data.objects_of(image);
  ASSERT_EQ(own.size(), 3U);
  EXPECT_EQ(own[0].box, (Box{20, 20, 40, 40}));
  EXPECT_EQ(own[1].box, (Box{100, 0, 120, 80}));
  EXPECT_DOUBLE_EQ(own[1].size(), 40);
  EXPECT_DOUBLE_EQ(own[1].ratio(), 4);
  EXPECT_DOUBLE_EQ(own[1].short_side(), 20);
  EXPECT_TRUE(own[2].crowd);
  EXPECT_EQ(crowd_count(data), 999U);
}

TEST(SeenData, IsSameForAnyThreadCount) {
  const auto on = [](int threads) {
    tbb::task_arena arena(threads);
    return arena.execute([] { return seen_data(MadeSource(), {"cat", "dog"}, doubled); });
  };
  const auto one = on(1), four = on(4);
  ASSERT_EQ(one.objects.size(), four.objects.size());
  for (std::size_t i = 0; i < one.images.size(); ++i) {
    EXPECT_EQ(one.images[i].sample, four.images[i].sample);
    EXPECT_EQ(one.images[i].first, four.images[i].first);
  }
  for (std::size_t i = 0; i < one.objects.size(); ++i)
    EXPECT_EQ(one.objects[i].box, four.objects[i].box);
}

TEST(ClassCounts, ExcludeCrowds) {
  const auto counts = class_counts(seen_data(MadeSource(), {"cat", "dog", "bird"}, {}));
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[0].objects, 1998U);  // samples 1, 2, 4, 5, ... except 2998 and 2999
  EXPECT_EQ(counts[1].objects, 999U);
  EXPECT_EQ(counts[1].images, 999U);
  EXPECT_EQ(counts[2].objects, 0U);
}

TEST(SizeCounts, SeparatesSizesAtBounds) {
  EXPECT_EQ(size_kind(15.9), 0U);
  EXPECT_EQ(size_kind(16), 1U);
  EXPECT_EQ(size_kind(95), 2U);
  EXPECT_EQ(size_kind(96), 3U);
  EXPECT_THAT(size_counts(seen_data(MadeSource(), {"cat", "dog"}, doubled)),
              ElementsAre(0, 1998, 999, 0));
}

TEST(Thinned, SelectsImagesEvenly) {
  const auto data = seen_data(MadeSource(), {"cat", "dog"}, {});
  const auto part = thinned(data, 10);
  ASSERT_EQ(part.images.size(), 10U);
  EXPECT_EQ(part.images[0].sample, 0);
  EXPECT_EQ(part.images[5].sample, 1499);
  for (const auto& image : part.images) {
    const auto own = part.objects_of(image);
    EXPECT_EQ(own.size(), image.sample % 3 == 0 ? 0U : image.sample % 3 == 1 ? 1U : 3U);
  }
}

TEST(Histogram, CountsEachValueOnce) {
  const std::vector<double> values = {-1, 0, 0.5, 1, 5, 5.5, 100};
  const auto counted = histogram(values, {0, 1, 5});
  EXPECT_THAT(counted.counts, ElementsAre(1, 2, 1, 3));
  EXPECT_EQ(std::accumulate(counted.counts.begin(), counted.counts.end(), std::size_t{0}),
            values.size());
  EXPECT_THROW(histogram(values, {1, 1}), std::invalid_argument);
}

TEST(Quantile, ReturnsValueAtFraction) {
  const std::vector<double> values = {5, 1, 3, 2, 4};
  EXPECT_EQ(quantile(values, 0), 1);
  EXPECT_EQ(quantile(values, 0.2), 1);
  EXPECT_EQ(quantile(values, 0.5), 3);
  EXPECT_EQ(quantile(values, 1), 5);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

TEST(SeenData, CountsObjectsOfRealData) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto root = testing::data_folder() / "coco_mini";
  const auto annotations = coco::read_dataset(root / "annotations/instances_train2017.json");
  const auto split = make_split(annotations, root / "train2017", {});
  const auto data = seen_data(DetectionSource(split, false), split.classes,
                              [](cv::Size size) { return shortest_edge_size(size, 800, 1333); });
  EXPECT_EQ(data.images.size(), annotations->images.size());
  EXPECT_EQ(data.objects.size(), annotations->annotations.size());
  coco::Findings findings(0);
  const auto counts = size_counts(data), expected = check_sizes(split, 800, 1333, findings);
  for (std::size_t k = 0; k < counts.size(); ++k)  // check_sizes() scales by the width only
    EXPECT_NEAR(static_cast<double>(counts[k]), static_cast<double>(expected[k]), 2);
}

}  // namespace
}  // namespace millrace
