// Which objects the anchors cover, compared with an exhaustive search over all anchors.
#include "millrace/tools/data/anchor_coverage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "millrace/base/random.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/sources/detection_source.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

AnchorRule pyramid(const std::vector<double>& sizes, std::int64_t stride) {
  AnchorRule rule;
  for (const double size : sizes) {
    auto& level = rule.levels.emplace_back(AnchorLevel{{}, stride});
    for (const double ratio : {0.5, 1.0, 2.0}) {
      const auto x = static_cast<float>(size / std::sqrt(ratio) / 2),
                 y = static_cast<float>(size * std::sqrt(ratio) / 2);
      level.cells.push_back({-x, -y, x, y});
    }
    stride *= 2;
  }
  return rule;
}

float iou(const Box& a, const Box& b, float offset) {
  const float area = (a.x2 - a.x1 + offset) * (a.y2 - a.y1 + offset);
  const float width = std::min(a.x2, b.x2) - std::max(a.x1, b.x1) + offset;
  const float height = std::min(a.y2, b.y2) - std::max(a.y1, b.y1) + offset;
  const float common = (width > 0 ? width : 0) * (height > 0 ? height : 0);
  const float ratio = common / (area + (b.x2 - b.x1 + offset) * (b.y2 - b.y1 + offset) - common);
  return ratio > 0 ? ratio : 0;
}

/// Returns all anchors of an image.
std::vector<Box> all_anchors(const AnchorRule& rule, cv::Size size) {
  std::vector<Box> anchors;
  const auto up = [&](int side) {
    return static_cast<int>((side + rule.divisor - 1) / rule.divisor * rule.divisor);
  };
  const int width = up(size.width), height = up(size.height);
  for (const auto& level : rule.levels) {
    const auto stride = static_cast<int>(level.stride);
    const int columns = (width + stride - 1) / stride, rows = (height + stride - 1) / stride;
    const int x = rule.stride_by_grid ? width / columns : stride;
    const int y = rule.stride_by_grid ? height / rows : stride;
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column)
        for (const auto& cell : level.cells) {
          const auto dx = static_cast<float>(column * x), dy = static_cast<float>(row * y);
          anchors.push_back({cell.x1 + dx, cell.y1 + dy, cell.x2 + dx, cell.y2 + dy});
        }
  }
  return anchors;
}

/// Computes the coverage from all pairs of objects and anchors, as the matcher does.
std::vector<ObjectCoverage> by_all_pairs(const SeenData& data, const SeenImage& image,
                                         const AnchorRule& rule) {
  const auto objects = data.objects_of(image);
  const auto anchors = all_anchors(rule, image.seen);
  const auto offset = static_cast<float>(rule.offset);
  std::vector<ObjectCoverage> coverage(objects.size());
  for (std::size_t g = 0; g < objects.size(); ++g)
    for (const auto& anchor : anchors)
      if (!objects[g].crowd)
        coverage[g].best_iou = std::max(coverage[g].best_iou, iou(objects[g].box, anchor, offset));
  const auto margin = static_cast<float>(rule.boundary);
  for (const auto& anchor : anchors) {
    if (rule.boundary >= 0 && (anchor.x1 < -margin || anchor.y1 < -margin ||
                               anchor.x2 >= static_cast<float>(image.seen.width) + margin ||
                               anchor.y2 >= static_cast<float>(image.seen.height) + margin))
      continue;
    float best = 0;
    std::size_t own = 0;
    bool is_best = false;
    for (std::size_t g = 0; g < objects.size(); ++g) {
      if (objects[g].crowd) continue;
      const float with = iou(objects[g].box, anchor, offset);
      if (with > best) best = with, own = g;
      is_best = is_best || (with > 0 && with == coverage[g].best_iou);
    }
    if (best == 0) continue;
    if (best >= static_cast<float>(rule.foreground))
      coverage[own].match = MatchKind::foreground;
    else if (rule.low_quality && is_best && coverage[own].match == MatchKind::nothing)
      coverage[own].match = MatchKind::low_quality;
  }
  return coverage;
}

/// Compares with by_all_pairs() and returns the number of objects of each MatchKind.
std::array<int, 3> expect_same(const SeenData& data, const AnchorRule& rule) {
  std::array<int, 3> kinds{};
  const auto coverage = anchor_coverage(data, rule);
  EXPECT_EQ(coverage.size(), data.objects.size());
  for (const auto& image : data.images) {
    const auto expected = by_all_pairs(data, image, rule);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto& box = data.objects[image.first + i].box;
      EXPECT_EQ(coverage[image.first + i].best_iou, expected[i].best_iou)
          << box.x1 << ' ' << box.y1 << ' ' << box.x2 << ' ' << box.y2;
      EXPECT_EQ(coverage[image.first + i].match, expected[i].match)
          << box.x1 << ' ' << box.y1 << ' ' << box.x2 << ' ' << box.y2;
      if (!data.objects[image.first + i].crowd)
        ++kinds[static_cast<std::size_t>(expected[i].match)];
    }
  }
  return kinds;
}

/// Returns images of odd sizes with objects of all sizes, many of them close together or equal.
SeenData made_data(int images, double grain) {
  Rng rng{5};
  SeenData data{.classes = {"one"}};
  for (int k = 0; k < images; ++k) {
    const cv::Size size(static_cast<int>(rng.uniform(40, 260)),
                        static_cast<int>(rng.uniform(40, 260)));
    Instances objects;
    const auto add = [&](const Box& box) {
      objects.boxes.push_back(box);
      objects.classes.push_back(0);
      objects.crowd.push_back(rng.chance(0.1));
      objects.segmentations.emplace_back();
    };
    const auto count = static_cast<int>(rng.uniform(0, 9));
    for (int i = 0; i < count; ++i) {
      const auto side = [&](int most) {
        const double value = std::exp(rng.uniform(std::log(2), std::log(most)));
        return std::max(1., std::round(value / grain) * grain);
      };
      const double width = side(size.width), height = side(size.height);
      const double x = std::floor(rng.uniform(0, size.width - width) / grain) * grain;
      const double y = std::floor(rng.uniform(0, size.height - height) / grain) * grain;
      add({static_cast<float>(x), static_cast<float>(y), static_cast<float>(x + width),
           static_cast<float>(y + height)});
      // Duplicates: one anchor cannot match both objects.
      if (rng.chance(0.2)) add(objects.boxes.back());
    }
    add_image(data, {.image_id = k, .original = size, .seen = size}, objects);
  }
  return data;
}

TEST(AnchorCoverage, MatchesExhaustiveSearch) {
  const auto rule = pyramid({32, 64, 128, 256, 512}, 4);
  const auto kinds = expect_same(made_data(150, 1e-3), rule);
  for (const int count : kinds) EXPECT_GT(count, 20);  // every kind occurs
}

TEST(AnchorCoverage, MatchesExhaustiveSearchWithTies) {
  // With whole pixels, an object inside an anchor is often inside its neighbours too, so IoUs tie.
  for (const auto& rule : {pyramid({16, 64, 256}, 8), pyramid({8}, 4), pyramid({300, 600}, 16)})
    expect_same(made_data(100, 1), rule);
}

TEST(AnchorCoverage, MatchesExhaustiveSearchForEachRule) {
  const auto data = made_data(60, 0.25);
  auto rule = pyramid({32, 64, 128, 256, 512}, 8);
  rule.foreground = 0.5;
  rule.low_quality = false;
  expect_same(data, rule);
  rule.low_quality = true;
  rule.stride_by_grid = true;
  expect_same(data, rule);
  rule.boundary = 0;
  expect_same(data, rule);
  rule.offset = 1;
  rule.divisor = 1;
  for (auto& level : rule.levels)
    for (auto& cell : level.cells) cell.x1 += 3, cell.x2 += 3;  // not centred
  expect_same(data, rule);
}

TEST(AnchorCoverage, MatchesExhaustiveSearchOnRealData) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto root = testing::data_folder() / "coco_mini";
  const auto split =
      make_split(coco::read_dataset(root / "annotations/instances_val2017.json"), "", {});
  const auto data =
      thinned(seen_data(DetectionSource(split, false), split.classes,
                        [](cv::Size size) { return shortest_edge_size(size, 800, 1333); }),
              12);
  expect_same(data, pyramid({32, 64, 128, 256, 512}, 4));
}

TEST(AnchorCoverage, MatchesHandComputedValue) {
  SeenData data{.classes = {"one"}};
  Instances objects{.boxes = {{8, 8, 16, 16}}, .classes = {0}, .crowd = {0}, .segmentations = {{}}};
  add_image(data, {.original = {64, 64}, .seen = {64, 64}}, objects);
  AnchorRule rule{.levels = {{{{-8, -8, 8, 8}}, 4}}};
  auto found = anchor_coverage(data, rule);
  EXPECT_FLOAT_EQ(found[0].best_iou, 0.25F);  // 8 x 8 in 16 x 16
  EXPECT_EQ(found[0].match, MatchKind::low_quality);
  rule.levels[0].cells = {{-4, -4, 4, 4}};
  EXPECT_EQ(anchor_coverage(data, rule)[0].match, MatchKind::foreground);
  rule.levels[0].cells = {{-400, -400, -300, -300}};
  found = anchor_coverage(data, rule);
  EXPECT_EQ(found[0].match, MatchKind::nothing);
  EXPECT_EQ(found[0].best_iou, 0);
  EXPECT_THROW(anchor_coverage(data, AnchorRule{}), std::invalid_argument);
}

TEST(CoverageSummary, CountsObjectsBySize) {
  const auto data = made_data(50, 1);
  const auto coverage = anchor_coverage(data, pyramid({32, 64, 128, 256, 512}, 4));
  const auto counts = summary(data, coverage);
  std::uint64_t objects = 0, half = 0;
  for (const auto& one : counts.by_size) {
    objects += one.objects;
    half += one.recalled[0];
    EXPECT_EQ(one.matched[0] + one.matched[1] + one.matched[2], one.objects);
    EXPECT_LE(one.recalled[1], one.recalled[0]);
    // recall at 0.7, unless the anchor belongs to another object
    EXPECT_LE(one.matched[0], one.recalled[1]);
  }
  EXPECT_EQ(objects, counts.all.objects);
  EXPECT_EQ(half, counts.all.recalled[0]);
  std::uint64_t small = 0;
  for (const double size : values(data, &SeenObject::size)) small += size < kSizeBounds[0];
  EXPECT_EQ(small, counts.by_size[0].objects);
}

}  // namespace
}  // namespace millrace
