#include "millrace/dataflow/detection/geometry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "millrace/base/random.h"
#include "millrace/dataflow/stages/geometric.h"
#include "tests/dataflow/samples.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

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

TEST(Mirror, ReversesMaskColumnsOrRows) {
  Rng rng{1};
  for (int round = 0; round < 200; ++round) {
    const auto mask = random_mask(1 + rng.below(12), 1 + rng.below(12), rng);
    const bool columns = round % 2 == 0;
    const auto result = mirrored(mask, columns ? Direction::horizontal : Direction::vertical);
    const auto before = bitmap(mask), after = bitmap(result);
    ASSERT_EQ(result, coco::encode(after.data(), mask.height, mask.width)) << "canonical runs";
    for (std::size_t y = 0; y < mask.height; ++y)
      for (std::size_t x = 0; x < mask.width; ++x)
        ASSERT_EQ(after[y * mask.width + x], columns
                                                 ? before[y * mask.width + mask.width - 1 - x]
                                                 : before[(mask.height - 1 - y) * mask.width + x]);
  }
  // all background, all foreground
  for (const auto& mask : {coco::Rle{3, 4, {12}}, coco::Rle{3, 4, {0, 12}}})
    EXPECT_EQ(mirrored(mask, Direction::horizontal), mask);
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

TEST(Resize, SamplesNearestMaskPixel) {
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
  const coco::Rle mask{1, 4, {1, 1, 1, 1}};  // 0 1 0 1
  EXPECT_EQ(resized(mask, 2, 1), (coco::Rle{1, 2, {0, 2}}));
  EXPECT_EQ(resized(mask, 2, 1, Sampling::corners), (coco::Rle{1, 2, {2}}));
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

constexpr Visibility kAll{.min_area = 0};

bool is_mask(const Instances& objects) {
  return std::holds_alternative<coco::Rle>(objects.segmentations[0]);
}

/// Returns a window of random size and position that often exceeds the image.
cv::Rect random_window(cv::Size image, Rng& rng) {
  const int width = static_cast<int>(rng.between(20, image.width));
  const int height = static_cast<int>(rng.between(20, image.height));
  const auto x = static_cast<int>(rng.between(-20, image.width - width + 20));
  return {x, static_cast<int>(rng.between(-20, image.height - height + 20)), width, height};
}

/// Returns the part of a mask inside a window.
coco::Rle under(const coco::Rle& mask, const cv::Rect& window) {
  return coco::window(mask, window.x, window.y, static_cast<std::uint32_t>(window.height),
                      static_cast<std::uint32_t>(window.width));
}

TEST(Mirror, MatchesMirroredMasksOfRealObjects) {
  MILLRACE_NEEDS_DATA("coco_mini");
  for (const auto& sample : real_samples()) {
    const cv::Size size(sample.width, sample.height);
    for (const auto way : {Direction::horizontal, Direction::vertical})
      for (std::size_t i = 0; i < sample.objects.size(); ++i) {
        auto object = only(sample.objects, i);
        const auto before = rasterised(object.segmentations[0], size);
        mirror(object, way == Direction::horizontal ? size.width : size.height, way);
        const auto after = rasterised(object.segmentations[0], size);
        if (is_mask(object)) {
          EXPECT_EQ(after, mirrored(before, way));
        } else if (coco::area(before) >= 400) {  // COCO's rounding depends on the direction
          EXPECT_GT(iou(after, mirrored(before, way)), 0.95);
        }
      }
  }
}

TEST(Clip, KeepsInsideAndDropsEmptyParts) {
  const coco::Polygon inside = {0, 0, 10, 0, 10, 8, 3, 4};
  EXPECT_EQ(clipped(inside, {10, 8}), inside);
  EXPECT_THAT(clipped({-4, 2, -1, 2, -1, 6}, {10, 10}), IsEmpty());
  EXPECT_THAT(clipped({-4, 2, 0, 3, -4, 6}, {10, 10}), IsEmpty()) << "touches the border";
  EXPECT_THAT(clipped({-4, 2, 0, 2, 0, 6, -4, 6}, {10, 10}), IsEmpty()) << "lies along the border";
  // The edges pass through the corners of the image.
  const coco::Polygon diamond = {5, -5, 15, 5, 5, 15, -5, 5};
  const std::vector<coco::Polygon> cut = {clipped(diamond, {10, 10})};
  EXPECT_EQ(bounds(cut), (Box{0, 0, 10, 10}));
  EXPECT_EQ(coco::area(coco::from_polygons(cut, 10, 10)), 100U);
  EXPECT_THAT(clipped({-4, 2, 4, 2, 4, 6, -4, 6}, {10, 10}), SizeIs(8));
}

TEST(Clip, AddsNoPixelsAlongBorder) {
  const coco::Polygon comb = {-5, 1, 8, 1, 8, 3, -3, 3, -3, 6, 8, 6, 8, 9, -5, 9};
  const auto expected = coco::from_polygons({&comb, 1}, 10, 10);
  const auto cut = clipped(comb, {10, 10});
  EXPECT_EQ(coco::from_polygons({&cut, 1}, 10, 10), expected);
  EXPECT_EQ(coco::area(expected), 8U * 2 + 8U * 3);
}

TEST(Crop, CropsMasksExactly) {
  Rng rng{5};
  for (int round = 0; round < 300; ++round) {
    const auto mask = random_mask(20 + rng.below(30), 20 + rng.below(30), rng);
    const cv::Size size(static_cast<int>(mask.width), static_cast<int>(mask.height));
    const auto window = random_window(size, rng);
    Instances object{{coco::bounding_box(mask)}, {0}, {0}, {mask}};
    crop(object, window, kAll);
    const auto expected = under(mask, window);
    ASSERT_EQ(object.size() == 0, coco::area(expected) == 0);
    if (object.size() == 0) continue;
    ASSERT_EQ(std::get<coco::Rle>(object.segmentations[0]), expected);
    ASSERT_EQ(object.boxes[0], coco::bounding_box(expected));
  }
}

/// Run lengths are cropped exactly. Polygons are rasterised on COCO's grid of fifths of a pixel,
/// and cropping adds points to them: the outline's pixels differ at these points and where a
/// coordinate lies between two grid points.
TEST(Crop, MatchesCroppedMasksOfRealObjects) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{6};
  for (const auto& sample : real_samples()) {
    const cv::Size size(sample.width, sample.height);
    const auto window = random_window(size, rng);
    for (std::size_t i = 0; i < sample.objects.size(); ++i) {
      auto object = only(sample.objects, i);
      const auto expected = under(rasterised(object.segmentations[0], size), window);
      const bool exact = is_mask(object);
      crop(object, window, kAll);
      expect_sound(object, window.size());
      if (object.size() == 0) {
        EXPECT_LE(coco::area(expected), 30U) << "a sliver thinner than a pixel";
        continue;
      }
      const auto left = rasterised(object.segmentations[0], window.size());
      if (exact) {
        EXPECT_EQ(left, expected);
      } else if (coco::area(expected) >= 100) {
        EXPECT_GT(iou(left, expected), 0.95);
      }
      // COCO's rule paints pixels that are half inside, so a mask exceeds its box by less than one
      // pixel.
      const auto box = object.boxes[0], painted = coco::bounding_box(left);
      if (box != painted && coco::area(left) > 0) {
        EXPECT_GE(painted.x1, box.x1 - 1);
        EXPECT_GE(painted.y1, box.y1 - 1);
        EXPECT_LE(painted.x2, box.x2 + 1);
        EXPECT_LE(painted.y2, box.y2 + 1);
      }
    }
  }
}

TEST(Crop, KeepsBoxesOfWholeObjects) {
  Instances objects;
  objects.boxes = {{10, 10, 20, 20}, {2, 10, 12, 20}, {30, 30, 40, 40}};
  objects.classes = {1, 2, 3};
  objects.crowd = {0, 0, 0};
  objects.segmentations = {std::vector<coco::Polygon>{{11, 11, 19, 11, 19, 19}}, {}, {}};
  crop(objects, {5, 5, 20, 20}, kAll);
  EXPECT_THAT(objects.boxes, ElementsAre(Box{5, 5, 15, 15}, Box{0, 5, 7, 15}));
  EXPECT_THAT(objects.classes, ElementsAre(1, 2));
}

TEST(Crop, DropsHardlyVisibleObjects) {
  Instances objects;
  objects.boxes = {{0, 0, 10, 10}};
  objects.classes = {0};
  objects.crowd = {0};
  objects.segmentations = {std::vector<coco::Polygon>{{0, 0, 10, 0, 10, 10, 0, 10}}};
  const auto left = [&](Visibility visibility) {
    auto some = objects;
    crop(some, {7, 0, 50, 50}, visibility);  // 30 of 100 pixels remain
    return some.size();
  };
  EXPECT_EQ(left({.min_area = 30}), 1U);
  EXPECT_EQ(left({.min_area = 31}), 0U);
  EXPECT_EQ(left({.min_area = 0, .min_visible = 0.3}), 1U);
  EXPECT_EQ(left({.min_area = 0, .min_visible = 0.31}), 0U);
}

TEST(Warp, MatchesCropForWholePixels) {
  MILLRACE_NEEDS_DATA("coco_mini");
  for (const auto& sample : real_samples()) {
    SCOPED_TRACE(sample.path);
    const cv::Size size(sample.width, sample.height);
    auto one = sample.objects, other = sample.objects;
    warp(one, cv::Matx23d::eye(), size, Visibility{});
    EXPECT_TRUE(same(one, sample.objects));
    crop(other, {{0, 0}, size}, Visibility{});
    EXPECT_TRUE(same(other, sample.objects));
    warp(one, {1, 0, 17, 0, 1, -23}, size, Visibility{});
    crop(other, {{-17, 23}, size}, Visibility{});
    EXPECT_TRUE(same(one, other));
  }
}

TEST(Warp, MatchesWarpedMasksOfRealObjects) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{7};
  const Affine stage{
      .rotation = 30, .min_scale = 0.7, .max_scale = 1.4, .translation = 0.1, .shear = 10};
  int seen = 0;
  for (const auto& sample : real_samples()) {
    const cv::Size size(sample.width, sample.height);
    const auto matrix = Affine::matrix(stage.draw(rng), size, size);
    for (std::size_t i = 0; i < sample.objects.size(); ++i) {
      auto object = only(sample.objects, i);
      const auto expected = warped(rasterised(object.segmentations[0], size), matrix, size);
      warp(object, matrix, size, Visibility{});
      expect_sound(object, size);
      if (coco::area(expected) < 1000) continue;
      ASSERT_EQ(object.size(), 1U);
      EXPECT_GT(iou(rasterised(object.segmentations[0], size), expected), 0.9);
      ++seen;
    }
  }
  EXPECT_GT(seen, 200);
}

TEST(Warp, IsInvertible) {
  Rng rng{8};
  const Affine stage{.rotation = 180, .min_scale = 0.5, .max_scale = 2, .shear = 20};
  for (int round = 0; round < 100; ++round) {
    const auto matrix = Affine::matrix(stage.draw(rng), {80, 60}, {80, 60});
    const auto there = transformed(13, 47, matrix);
    const auto back = transformed(there[0], there[1], inverse(matrix));
    EXPECT_NEAR(back[0], 13, 1e-9);
    EXPECT_NEAR(back[1], 47, 1e-9);
  }
  EXPECT_THROW(inverse({1, 2, 0, 2, 4, 0}), std::invalid_argument);
}

TEST(Cover, RemovesCoveredPixelsOnly) {
  MILLRACE_NEEDS_DATA("coco_mini");
  Rng rng{9};
  int cut = 0, whole = 0;
  for (const auto& sample : real_samples()) {
    const cv::Size size(sample.width, sample.height);
    const auto window = random_window(size, rng);
    const coco::Rle square{static_cast<std::uint32_t>(window.height),
                           static_cast<std::uint32_t>(window.width),
                           {0, static_cast<std::uint32_t>(window.area())}};
    const auto hidden = under(square, cv::Rect(-window.tl(), size));
    for (std::size_t i = 0; i < sample.objects.size(); ++i) {
      const auto before = only(sample.objects, i);
      auto object = before;
      remove_covered_pixels(object, hidden, Visibility{});
      const auto mask = rasterised(before.segmentations[0], size);
      const auto rest = coco::difference(mask, hidden);
      if (coco::area(rest) == coco::area(mask)) {
        EXPECT_TRUE(same(object, before)) << "polygons are kept if no pixel is covered";
        ++whole;
      } else if (coco::area(rest) == 0) {
        EXPECT_EQ(object.size(), 0U);
      } else {
        EXPECT_EQ(std::get<coco::Rle>(object.segmentations.at(0)), rest);
        EXPECT_EQ(object.boxes.at(0), coco::bounding_box(rest));
        ++cut;
      }
    }
  }
  EXPECT_GT(cut, 50);
  EXPECT_GT(whole, 50);
}

TEST(Instances, FilterAndAppendHandleAllMembers) {
  Instances objects{{{0, 0, 1, 1}, {0, 0, 2, 2}, {0, 0, 3, 3}},
                    {1, 2, 3},
                    {0, 1, 0},
                    {{}, {}, coco::Rle{2, 2, {4}}}};
  filter_objects(objects, {false, true, true});
  EXPECT_THAT(objects.classes, ElementsAre(2, 3));
  EXPECT_THAT(objects.crowd, ElementsAre(1, 0));
  append(objects, only(objects, 1));
  EXPECT_THAT(objects.classes, ElementsAre(2, 3, 3));
  EXPECT_EQ(objects.boxes[2], (Box{0, 0, 3, 3}));
  EXPECT_EQ(objects.segmentations[2], objects.segmentations[1]);
}

}  // namespace
}  // namespace millrace
