// Boundary AP, compared with erosion pixel by pixel, hand-computed cases and recorded values of
// boundary-iou-api.
#include "millrace/coco/masks/boundary.h"

#include <gtest/gtest.h>

#include "millrace/coco/evaluation/evaluate.h"
#include "tests/coco/random_masks.h"
#include "tests/coco/result_sets.h"
#include "tests/support/data.h"

namespace millrace::coco {
namespace {

/// Erodes a bitmap by testing the square around each pixel.
std::vector<std::uint8_t> eroded_pixels(const std::vector<std::uint8_t>& bitmap, int height,
                                        int width, int by) {
  const auto inside = [&](int y, int x) {
    return y >= 0 && x >= 0 && y < height && x < width &&
           bitmap[static_cast<std::size_t>(y * width + x)] != 0;
  };
  std::vector<std::uint8_t> left;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      bool all = true;
      for (int dy = -by; dy <= by; ++dy)
        for (int dx = -by; dx <= by; ++dx) all = all && inside(y + dy, x + dx);
      left.push_back(all);
    }
  return left;
}

TEST(Boundary, ErodesWithSquares) {
  std::mt19937 random(3);
  std::uint64_t left = 0;
  for (int i = 0; i < 300; ++i) {
    const auto height = 1 + random() % 40, width = 1 + random() % 40, by = 1 + random() % 4;
    const int sides[] = {static_cast<int>(height), static_cast<int>(width), static_cast<int>(by)};
    // Mostly filled bitmaps, so that some pixels remain after the erosion.
    std::vector<std::uint8_t> bitmap(height * width, 1);
    for (auto n = random() % 6; n > 0; --n) bitmap[random() % bitmap.size()] = 0;
    if (i % 4 == 0) bitmap = testing::random_bitmap(random, height, width);
    const auto mask = encode(bitmap.data(), height, width);
    const auto wanted = eroded_pixels(bitmap, sides[0], sides[1], sides[2]);
    ASSERT_EQ(eroded(mask, by), encode(wanted.data(), height, width)) << i;
    left += area(eroded(mask, by));
  }
  EXPECT_GT(left, 1000U);
}

TEST(Boundary, MergesTouchingRuns) {
  const Rle split{9, 9, {9, 20, 0, 43, 9}}, whole{9, 9, {9, 63, 9}};
  EXPECT_EQ(eroded(split, 1), eroded(whole, 1));
  EXPECT_EQ(area(eroded(whole, 1)), 35U);
}

TEST(Boundary, RoundsWidthHalfToEven) {
  EXPECT_EQ(boundary_width(480, 640), 16U);
  EXPECT_EQ(boundary_width(45, 60), 2U);   // rounds 1.5
  EXPECT_EQ(boundary_width(75, 100), 2U);  // rounds 2.5
  EXPECT_EQ(boundary_width(1, 1), 1U);
  const Rle full{45, 60, {0, 45 * 60}};
  EXPECT_EQ(area(boundary(full)), 45U * 60 - 41 * 56) << "the image border counts as a boundary";
  EXPECT_EQ(area(boundary(Rle{45, 60, {45 * 60}})), 0U);
}

/// Returns the AP for this object and detection beside an object that is detected exactly. All are
/// filled boxes in a 300 x 300 image, where boundaries are 8 pixels wide.
double ap_of(const Rectangle& object, const Rectangle& detection, IouType iou, bool crowd = false) {
  auto set = scene({{1, object, crowd}, {1, {0, 0, 100, 100}}},
                   {{1, {0, 0, 100, 100}, .9}, {1, detection, .8}});
  return evaluate(*set.data(), Detections(set.found), {.iou = iou}).stats[0];
}

TEST(BoundaryAp, UsesSmallerOfMaskAndBoundaryIou) {
  const Rectangle object{100, 100, 200, 200}, off{104, 100, 196, 200};
  // The masks have an IoU of .98. On one side the boundaries, 8 pixels wide, are shifted by 4
  // pixels.
  EXPECT_GT(ap_of(object, off, IouType::mask), ap_of(object, off, IouType::boundary));
  const Rectangle thin{150, 150, 15, 100}, shorter{150, 150, 15, 60};
  EXPECT_EQ(ap_of(thin, shorter, IouType::mask), ap_of(thin, shorter, IouType::boundary))
      << "a mask that is all boundary";
}

TEST(BoundaryAp, UsesMaskIouForCrowds) {
  // The detection is in the middle of the crowd, far from the crowd's outline.
  const Rectangle crowd{100, 100, 200, 200}, inside{150, 150, 60, 60};
  EXPECT_GT(ap_of(crowd, inside, IouType::boundary, /*crowd=*/true), .99);
  EXPECT_LT(ap_of(crowd, inside, IouType::boundary), .6);
}

TEST(BoundaryAp, MatchesBoundaryIouApi) {
  MILLRACE_NEEDS_DATA("eval");
  struct Recorded {
    const char *gt, *dt;
    std::vector<double> stats;
  };
  // Recorded with cv2.erode and the masks and COCOeval of pycocotools 2.0.11.
  const Recorded all[] = {
      {"cocoapi100/instances_val2014_100.json",
       "cocoapi100/instances_val2014_fakesegm100_results.json",
       {0.22639400050237551, 0.3775010774391817, 0.22557984624218536, 0.3873740315997837,
        0.27236740312792934, 0.07554378414806896, 0.18722550309388875, 0.31265229701106306,
        0.3140431150818811, 0.4694498622754236, 0.34054347826086956, 0.10387037037037035}},
      {"syn_A_val/gt.json",
       "syn_A_val/dt_both.json",
       {0.258255203639516, 0.3800659068524535, 0.23947513157817607, 0.3220071921362932,
        0.33314334083177904, 0.26013129573826943, 0.2612131462641667, 0.3347271605945075,
        0.336061540500316, 0.3351725553345331, 0.3793961952026468, 0.33108695652173914}}};
  for (const auto& [gt, dt, stats] : all) {
    const auto truth = read_dataset(testing::data_folder() / "eval" / gt);
    const auto found = read_detections(testing::data_folder() / "eval" / dt, truth.get());
    const auto result =
        evaluate(*truth, found, {.iou = IouType::boundary, .area = area_from(found)});
    EXPECT_EQ(result.stats, stats) << dt;
  }
}

}  // namespace
}  // namespace millrace::coco
