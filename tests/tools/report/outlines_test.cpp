// Thumbnails and mask outlines stay within their limits.
#include "millrace/tools/report/gallery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::report {
namespace {

TEST(Outlines, LimitThumbnailBytes) {
  cv::Mat3b noise(400, 600);
  for (int i = 0; i < noise.rows * noise.cols; ++i)
    noise(i / noise.cols, i % noise.cols) = cv::Vec3b(i * 37, i * 91, i * i);
  EXPECT_LE(thumbnail(noise, 20'000).size(), 20'000U);
  EXPECT_GT(thumbnail(noise, 1'000'000).size(), 20'000U);
}

TEST(Outlines, AreRingsForPolygons) {
  const std::vector<coco::Polygon> polygons = {{1, 2, 11.4, 2, 11, 12, 1, 12}, {5, 5, 6, 6}};
  EXPECT_EQ(outline_of(polygons), (Rings{{1, 2, 11, 2, 11, 12, 1, 12}}));
  EXPECT_EQ(outline_of(coco::Segmentation()), Rings());
}

TEST(Outlines, HaveTwoRingsForHole) {
  std::vector<std::uint8_t> inside(40 * 40, 0);
  for (int x = 5; x < 35; ++x)
    for (int y = 5; y < 35; ++y)
      inside[static_cast<std::size_t>(x * 40 + y)] = x < 15 || x > 25 || y < 15 || y > 25;
  EXPECT_EQ(outline_of(coco::encode(inside.data(), 40, 40)).size(), 2U);
  EXPECT_EQ(outline_of(coco::encode(std::vector<std::uint8_t>(1600).data(), 40, 40)), Rings());
}

}  // namespace
}  // namespace millrace::report
