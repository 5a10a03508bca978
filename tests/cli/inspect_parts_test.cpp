// The images of a split that `trainer inspect` shows, and its remarks on the statistics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "millrace/cli/inspect/distributions.h"
#include "millrace/cli/inspect/remarks.h"
#include "millrace/cli/inspect/split_gallery.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Returns 640 x 480 images; image i has `of(i)` squares of `side(i)` pixels of class i modulo 3.
template <class Count, class Side>
SeenData made(int images, Count of, Side side) {
  SeenData data{.classes = {"cat", "dog", "bird", "fish"}};
  for (int i = 0; i < images; ++i) {
    Instances objects;
    for (int k = 0; k < of(i); ++k) {
      const auto x = static_cast<float>(20 * k % 400), length = static_cast<float>(side(i));
      objects.boxes.push_back({x, 10, x + length, 10 + length});
      objects.classes.push_back(i % 3);
      objects.crowd.push_back(i == 7 && k == 0);
      objects.segmentations.emplace_back();
    }
    add_image(data, {.image_id = i, .sample = i, .original = {640, 480}, .seen = {640, 480}},
              objects);
  }
  return data;
}

bool has(const std::vector<ChosenImage>& chosen, std::size_t image, const std::string& tag) {
  return std::ranges::any_of(chosen, [&](const ChosenImage& one) {
    return one.image == image && std::ranges::count(one.tags, tag) > 0;
  });
}

TEST(ChooseImages, ChoosesExtremesAndSamples) {
  const auto data = made(
      500, [](int i) { return i == 100  ? 0
                              : i == 40 ? 30
                                        : 1 + i % 3; },
      [](int i) { return i == 300   ? 3
                         : i == 301 ? 400
                                    : 50; });
  std::vector<ObjectCoverage> coverage(data.objects.size(), {.match = MatchKind::foreground});
  coverage[data.images[222].first].match = MatchKind::nothing;
  const auto chosen = choose_images(data, coverage, 48);
  EXPECT_EQ(chosen.size(), 48U);
  EXPECT_TRUE(std::ranges::is_sorted(chosen, {}, &ChosenImage::image));
  EXPECT_TRUE(has(chosen, 40, "many objects"));
  EXPECT_TRUE(has(chosen, 100, "without an object"));
  EXPECT_TRUE(has(chosen, 300, "small objects"));
  EXPECT_TRUE(has(chosen, 301, "large objects"));
  EXPECT_TRUE(has(chosen, 222, "beyond all anchors"));
  EXPECT_TRUE(has(chosen, 7, "with a crowd"));
  EXPECT_TRUE(has(chosen, 0, "first of its class"));
  for (const auto& one : chosen) EXPECT_FALSE(one.tags.empty());
  EXPECT_GE(
      std::ranges::count_if(chosen, [](const ChosenImage& one) { return one.tags[0] == "any"; }),
      10);
}

TEST(ChooseImages, ChoosesAllIfImagesAreFew) {
  const auto chosen = choose_images(made(
                                        5, [](int) { return 1; }, [](int) { return 20; }),
                                    {}, 48);
  EXPECT_EQ(chosen.size(), 5U);
  EXPECT_TRUE(choose_images({}, {}, 48).empty());
}

SplitView view_of(SeenData data) {
  return {.name = "train2017", .seen = "as they are", .data = std::move(data)};
}

std::vector<std::string> names(const std::vector<Remark>& all) {
  std::vector<std::string> result;
  for (const auto& one : all) result.push_back(one.name);
  return result;
}

std::string text_of(const std::vector<Remark>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &Remark::name);
  return found == all.end() ? "" : found->text;
}

TEST(Remarks, NameKeysToChange) {
  const auto small = view_of(made(
      100, [](int i) { return i == 9 ? 150 : 3; }, [](int) { return 8; }));
  const auto found =
      remarks(small, small, nullptr, {.max_detections = 100, .anchor_ratios = {.5, 1, 2}});
  EXPECT_THAT(text_of(found, "tiny-objects"), AllOf(HasSubstr("100 %"), HasSubstr("16")));
  EXPECT_THAT(text_of(found, "many-objects"),
              AllOf(HasSubstr("1 image"), HasSubstr("model.test.detections_per_img"),
                    HasSubstr("100"), HasSubstr("150")));
  EXPECT_THAT(text_of(found, "classes-without-objects"), HasSubstr("fish"));
  EXPECT_THAT(text_of(found, "crowds"), HasSubstr("1 crowd"));
  EXPECT_THAT(names(found), Not(Contains("long-objects")));
}

TEST(Remarks, CompareSplits) {
  const auto train = view_of(made(
      30, [](int) { return 2; }, [](int) { return 100; }));
  auto val = view_of(made(
      30, [](int) { return 2; }, [](int) { return 50; }));
  val.name = "val2017";
  EXPECT_THAT(text_of(remarks(train, train, &val, {}), "validation-differs"),
              AllOf(HasSubstr("val2017"), HasSubstr("0.5"), HasSubstr("train2017")));
  EXPECT_THAT(names(remarks(train, train, &train, {})), Not(Contains("validation-differs")));
}

TEST(Remarks, ReportSplitsWithoutObjects) {
  const auto none = view_of(made(
      3, [](int) { return 0; }, [](int) { return 1; }));
  EXPECT_EQ(names(remarks(none, none, nullptr, {})), std::vector<std::string>{"no-objects"});
}

TEST(Distributions, CountEachObjectAndImage) {
  const auto view = view_of(made(
      60, [](int i) { return i % 4; }, [](int i) { return 5 + 10 * i; }));
  const auto objects = view.data.objects.size() - crowd_count(view.data);
  for (const auto& one : distributions(view)) {
    const bool of_objects = one.id.starts_with("object_");
    const auto& counts = one.histogram.counts;
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::size_t{0}),
              of_objects ? objects : 60U)
        << one.id;
    EXPECT_EQ(one.histogram.counts[0], 0U) << one.id << ": below its first edge";
    EXPECT_FALSE(one.meaning.empty());
    const auto bins = bounded_bins(one);
    ASSERT_EQ(bins.edges.size(), bins.counts.size() + 1);
    EXPECT_EQ(bins.edges.back(), std::max(one.max, one.histogram.edges.back()));
  }
}

TEST(Distributions, AreEmptyWithoutImages) {
  EXPECT_TRUE(distributions({}).empty());
  EXPECT_FALSE(histogram_picture({}).empty());
}

}  // namespace
}  // namespace millrace::cli
