// Scores of perfect detections, limited by NMS, the number of detections, the anchors or the
// resolution of masks.
#include "millrace/tools/data/ceilings.h"

#include <gtest/gtest.h>
#include <tbb/task_arena.h>

#include <cmath>

#include "millrace/coco/data/records.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "tests/support/data.h"

namespace millrace {
namespace {

constexpr double kClose = 1e-9;

/// Images of 400 x 400 with the class "one" and another class that is not detected.
struct MadeTruth {
  coco::Records records;

  MadeTruth() {
    records.add_category(1, "one");
    records.add_category(2, "two");
    for (int i = 1; i <= 4; ++i) records.add_image(i, "", 400, 400);
  }

  void add(std::int64_t image, double x, double y, double side, std::int64_t category = 1,
           bool crowd = false) {
    records.add({.id = static_cast<std::int64_t>(records.annotations.size()) + 1,
                 .image_id = image,
                 .category_id = category,
                 .bbox = {x, y, side, side},
                 .area = side * side,
                 .crowd = crowd},
                std::vector<coco::Polygon>{circle(x, y, side)});
  }

  static coco::Polygon circle(double x, double y, double side) {
    coco::Polygon outline;
    for (int i = 0; i < 64; ++i) {
      const double angle = i * 2 * 3.14159265358979 / 64;
      outline.push_back(x + side / 2 * (1 + std::cos(angle)));
      outline.push_back(y + side / 2 * (1 + std::sin(angle)));
    }
    return outline;
  }

  DataSplit split(const std::vector<std::string>& classes = {"one"}) const {
    return make_split(assemble(records, "made"), "nowhere", classes);
  }
};

TEST(Ceilings, AreOneForSeparateObjects) {
  MadeTruth truth;
  for (int i = 1; i <= 4; ++i) truth.add(i, 20, 20, 100), truth.add(i, 200, 200, 60);
  truth.add(1, 0, 0, 400, 1, /*crowd=*/true);
  truth.add(2, 20, 20, 100, 2);  // of the class that is not detected
  const auto found = ceilings(truth.split(), {});
  EXPECT_EQ(found.objects, 8U);
  EXPECT_NEAR(found.boxes, 1, kClose);
  EXPECT_EQ(found.suppressed + found.beyond_limit + found.unreached, 0U);
  EXPECT_FALSE(found.reached);
  EXPECT_FALSE(found.masks);
  auto other = truth.split();
  other.category_ids = {kNoCategory};
  EXPECT_EQ(ceilings(other, {}).boxes, -1) << "no objects";
}

TEST(Ceilings, CountObjectsRemovedByNms) {
  MadeTruth truth;
  truth.add(1, 0, 0, 100);
  truth.add(1, 0, 20, 100);     // IoU 2 / 3
  truth.add(1, 0, 20, 100, 2);  // of a different class, so it is kept
  truth.add(1, 200, 0, 100);
  const auto both = truth.split({"one", "two"});
  const auto found = ceilings(both, {.nms = .5});
  EXPECT_EQ(found.suppressed, 1U);
  // Two of the three objects of the first class are found and all of the second: for the first
  // class, precision is 1 at 67 of the 101 recall values.
  EXPECT_NEAR(found.boxes, (67. / 101 + 1) / 2, kClose);
  EXPECT_NEAR(ceilings(both, {.nms = .7}).boxes, 1, kClose);
  EXPECT_NEAR(ceilings(both, {.nms = std::nullopt}).boxes, 1, kClose);
}

TEST(Ceilings, CountObjectsBeyondDetectionLimit) {
  MadeTruth truth;
  for (int i = 0; i < 4; ++i) truth.add(1, 100 * i, 0, 50);
  const auto found = ceilings(truth.split(), {.detections_per_image = 3});
  EXPECT_EQ(found.beyond_limit, 1U);
  EXPECT_NEAR(found.boxes, 76. / 101, kClose);  // recalls 0 to .75
}

TEST(Ceilings, ClipBoxesToImage) {
  MadeTruth truth;
  truth.add(1, 350, 100, 100);  // half of it is outside
  EXPECT_NEAR(ceilings(truth.split(), {}).boxes, .1, kClose) << "matched only at IoU .5";
}

TEST(Ceilings, CountObjectsWithoutAnchor) {
  MadeTruth truth;
  truth.add(1, 20, 20, 100);
  truth.add(2, 20, 20, 100);
  // The only anchor is exactly on the objects. In halved images it misses them.
  AnchorRule anchors;
  anchors.levels.push_back({{{20, 20, 120, 120}}, 4096});
  anchors.low_quality = false;
  const auto same = ceilings(truth.split(), {.anchors = anchors});
  EXPECT_EQ(same.unreached, 0U);
  EXPECT_EQ(same.reached, same.boxes);
  const auto halved = ceilings(
      truth.split(), {.anchors = anchors, .resize = [](cv::Size size) { return size / 2; }});
  EXPECT_EQ(halved.unreached, 2U);
  EXPECT_EQ(halved.reached, 0);
  EXPECT_NEAR(halved.boxes, 1, kClose);
}

TEST(Ceilings, IncreaseWithMaskResolution) {
  MadeTruth truth;
  for (int i = 1; i <= 4; ++i) truth.add(i, 30, 30, 300), truth.add(i, 340, 340, 40);
  const auto ap = [&](CeilingRule::Masks masks) {
    return *ceilings(truth.split(), {.masks = masks}).masks;
  };
  EXPECT_LT(ap({.cells = 3}), ap({.cells = 6}));
  EXPECT_LT(ap({.cells = 6}), ap({.cells = 28}));
  EXPECT_LT(ap({.cells = 6}), ap({.cells = 6, .soft = true}));
  EXPECT_LT(ap({.cells = 6}), 1);
  EXPECT_NEAR(ap({.cells = 28}), 1, kClose) << "a round, smooth shape";
}

TEST(Ceilings, AreSameForAnyThreadCount) {
  MILLRACE_NEEDS_DATA("coco_mini");
  const auto data =
      coco::read_dataset(testing::data_folder() / "coco_mini/annotations/instances_train2017.json");
  std::vector<std::string> names;
  for (const auto& one : data->categories) names.emplace_back(data->text(one.name));
  const auto split = make_split(data, "nowhere", names);
  AnchorRule anchors;
  for (const float half : {16.F, 32.F, 64.F, 128.F, 256.F})
    anchors.levels.push_back({{{-half, -half, half, half}}, static_cast<std::int64_t>(half / 4)});
  const CeilingRule rule{
      .anchors = anchors,
      .resize = [](cv::Size size) { return shortest_edge_size(size, 800, 1333); },
      .masks = CeilingRule::Masks{}};
  const auto with = [&](int threads) {
    return tbb::task_arena(threads).execute([&] { return ceilings(split, rule); });
  };
  const auto one = with(1), two = with(2);
  EXPECT_EQ(one.boxes, two.boxes);
  EXPECT_EQ(one.masks, two.masks);
  EXPECT_EQ(one.reached, two.reached);
  EXPECT_GT(one.boxes, .95);
  EXPECT_LT(*one.masks, .99);
  EXPECT_GT(*one.masks, .85);
  EXPECT_LE(*one.reached, one.boxes);
  CeilingRule padded;
  padded.masks = CeilingRule::Masks{.padded = true};
  EXPECT_NE(ceilings(split, padded).masks, one.masks);
}

}  // namespace
}  // namespace millrace
