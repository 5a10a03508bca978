#include "dataflow/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;

using Bitmap = std::vector<std::uint8_t>;

coco::Rle random_mask(std::uint32_t width, std::uint32_t height, Rng& rng) {
  Bitmap pixels(std::size_t{width} * height);
  for (auto& pixel : pixels) pixel = rng.chance(0.6);
  return coco::encode(pixels.data(), height, width);
}

Bitmap bitmap(const coco::Rle& mask) {
  Bitmap pixels(std::size_t{mask.width} * mask.height);
  coco::decode(mask, pixels.data());
  return pixels;
}

TEST(Mirror, ReversesTheColumnsOfAMask) {
  Rng rng{1};
  for (int round = 0; round < 50; ++round) {
    const auto mask = random_mask(1 + rng.below(12), 1 + rng.below(12), rng);
    const auto before = bitmap(mask), after = bitmap(mirrored(mask, Direction::horizontal));
    for (std::size_t y = 0; y < mask.height; ++y)
      for (std::size_t x = 0; x < mask.width; ++x)
        ASSERT_EQ(after[y * mask.width + x], before[y * mask.width + mask.width - 1 - x]);
  }
}

TEST(Mirror, TwiceIsIdentity) {
  Rng rng{2};
  Instances objects;
  objects.boxes = {{1, 2, 30, 40}, {0, 0, 64, 5}};
  objects.segmentations = {std::vector<coco::Polygon>{{1, 2, 30, 2, 30, 40}},
                           random_mask(64, 48, rng)};
  auto twice = objects;
  mirror(twice, 64, Direction::horizontal);
  EXPECT_EQ(twice.boxes[0], (Box{34, 2, 63, 40}));
  EXPECT_NE(twice.segmentations, objects.segmentations);
  mirror(twice, 64, Direction::horizontal);
  EXPECT_EQ(twice.boxes, objects.boxes);
  EXPECT_EQ(twice.segmentations, objects.segmentations);
}

TEST(Mirror, TakesMasksAllInAndAllOut) {
  const coco::Rle empty{3, 4, {12}}, full{3, 4, {0, 12}};
  EXPECT_EQ(mirrored(empty, Direction::horizontal), empty);
  EXPECT_EQ(mirrored(full, Direction::horizontal), full);
}

TEST(Resize, ShowsTheNearestPixelOfAMask) {
  Rng rng{3};
  for (int round = 0; round < 200; ++round) {
    const auto mask = random_mask(1 + rng.below(12), 1 + rng.below(12), rng);
    const std::size_t width = 1 + rng.below(25), height = 1 + rng.below(25);
    const auto before = bitmap(mask);
    const auto result = resized(mask, width, height);
    const auto after = bitmap(result);
    ASSERT_EQ(result, coco::encode(after.data(), height, width)) << "canonical runs";
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) {
        const auto from_y = (2 * y + 1) * mask.height / (2 * height);
        const auto from_x = (2 * x + 1) * mask.width / (2 * width);
        ASSERT_EQ(after[y * width + x], before[from_y * mask.width + from_x]);
      }
  }
}

TEST(Resize, ScalesBoxesAndPolygons) {
  Instances objects;
  objects.boxes = {{1, 2, 3, 4}};
  objects.segmentations = {std::vector<coco::Polygon>{{1, 2, 3, 4, 5, 6}}};
  resize(objects, 20, 30, 2, 3);
  EXPECT_EQ(objects.boxes[0], (Box{2, 6, 6, 12}));
  EXPECT_THAT(std::get<std::vector<coco::Polygon>>(objects.segmentations[0])[0],
              ElementsAre(2, 6, 6, 12, 10, 18));
}

}  // namespace
}  // namespace millrace
