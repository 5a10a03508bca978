// Polygons are rasterised as in pycocotools, in an image and in a box.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "millrace/coco/masks/masks.h"
#include "tests/coco/random_masks.h"

namespace millrace::coco {
namespace {

using testing::random_polygon;

std::vector<std::uint8_t> in_box(std::span<const Polygon> polygons, const Box& box, int size) {
  std::vector<std::uint8_t> out(static_cast<std::size_t>(size) * size, 7);
  rasterize_in_box(polygons, box, size, out.data());
  return out;
}

TEST(Polygons, MatchPycocotools) {
  std::ifstream file("tests/coco/polygons.json");
  const auto cases = nlohmann::json::parse(file);
  ASSERT_GE(cases.size(), 10U);
  for (const auto& c : cases) {
    const auto polygons = c["polygons"].get<std::vector<Polygon>>();
    const Rle mask = from_polygons(polygons, c["h"], c["w"]);
    EXPECT_EQ(encode_counts(mask), c["rle"].get<std::string>());
    EXPECT_EQ(area(mask), c["area"].get<std::uint64_t>());
    const Box box = bounding_box(mask);
    const auto expected = c["bbox"].get<std::vector<float>>();
    EXPECT_EQ(expected, (std::vector{box.x1, box.y1, box.width(), box.height()}));
  }
}

TEST(Polygons, AreIndependentOfStartAndDirection) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Polygon polygon = random_polygon(random, 40, 30);
    Polygon turned(polygon.begin() + 2, polygon.end());
    turned.insert(turned.end(), polygon.begin(), polygon.begin() + 2);
    Polygon reversed;
    for (std::size_t p = polygon.size(); p > 0; p -= 2)
      reversed.insert(reversed.end(), {polygon[p - 2], polygon[p - 1]});
    const Rle mask = from_polygons({&polygon, 1}, 30, 40);
    EXPECT_EQ(from_polygons({&turned, 1}, 30, 40), mask);
    EXPECT_EQ(from_polygons({&reversed, 1}, 30, 40), mask);
  }
}

TEST(Polygons, AreMergedInAnyOrder) {
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i) {
    std::vector<Polygon> parts;
    for (int k = 0; k < 3; ++k) parts.push_back(random_polygon(random, 33, 21));
    const Rle mask = from_polygons(parts, 21, 33);
    std::swap(parts[0], parts[2]);
    EXPECT_EQ(from_polygons(parts, 21, 33), mask);
  }
}

TEST(Polygons, MayBeEmptyDistantOrInvalid) {
  EXPECT_EQ(from_polygons({}, 3, 4), (Rle{3, 4, {12}}));
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  const std::vector<Polygon> polygons = {
      {-1e300, -1e300, 1e300, -1e300, 1e300, 1e300, -1e300, 1e300}, {0, 0, inf, 5, nan, 8}, {1, 1}};
  EXPECT_EQ(area(from_polygons(polygons, 5, 5)), 25U);
}

TEST(Polygons, AreShiftedAndScaledToBox) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> at(-5, 40);
  for (int i = 0; i < 200; ++i) {
    const std::vector<Polygon> polygons = {random_polygon(random, 40, 40),
                                           random_polygon(random, 40, 40)};
    const float x = at(random), y = at(random);
    const Box box{x, y, x + 1 + std::abs(at(random)), y + 1 + std::abs(at(random))};
    std::vector<Polygon> moved = polygons;
    for (auto& polygon : moved)
      for (std::size_t p = 0; p < polygon.size(); p += 2) {
        polygon[p] = (polygon[p] - box.x1) * (28 / (double{box.x2} - box.x1));
        polygon[p + 1] = (polygon[p + 1] - box.y1) * (28 / (double{box.y2} - box.y1));
      }
    std::vector<std::uint8_t> expected(28 * 28);
    decode(from_polygons(moved, 28, 28), expected.data());
    EXPECT_EQ(in_box(polygons, box, 28), expected);
  }
}

TEST(Polygons, FillMaskOfEmptyBox) {
  const Polygon square = {0, 0, 10, 0, 10, 10, 0, 10};
  EXPECT_EQ(in_box({&square, 1}, Box{5, 5, 5, 5}, 7), std::vector<std::uint8_t>(49, 1));
}

}  // namespace
}  // namespace millrace::coco
