// Region masks pasted into an image, and masks of an image cropped to a box.
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "millrace/coco/masks/masks.h"
#include "tests/coco/random_masks.h"

namespace millrace::coco {
namespace {

using testing::random_bitmap;

/// Returns the value of detectron2's grid_sample at one pixel: bilinear, half-pixel centres, zero
/// padding.
double sampled(const std::vector<float>& mask, int size, const Box& box, int x, int y) {
  const double u = (x + .5 - box.x1) / (double{box.x2} - box.x1) * size - .5;
  const double v = (y + .5 - box.y1) / (double{box.y2} - box.y1) * size - .5;
  const int left = static_cast<int>(std::floor(u)), top = static_cast<int>(std::floor(v));
  double sum = 0;
  for (int r = top; r <= top + 1; ++r)
    for (int c = left; c <= left + 1; ++c) {
      if (r < 0 || c < 0 || r >= size || c >= size) continue;
      sum += (1 - std::abs(u - c)) * (1 - std::abs(v - r)) *
             mask[static_cast<std::size_t>(r) * size + c];
    }
  return sum;
}

/// Returns the value of torchvision's paste_masks_in_image at one pixel: the mask is padded with
/// zeros, its box is enlarged by the same factor and rounded to whole pixels, and the border is
/// repeated.
double sampled_framed(const std::vector<float>& mask, int size, const Box& box, int x, int y) {
  const auto place = [&](float low, float high, int pixel) -> std::optional<double> {
    const float grow = static_cast<float>(size + 2) / static_cast<float>(size);
    const float centre = (high + low) * .5F, half = (high - low) * .5F * grow;
    const int begin = static_cast<int>(centre - half), end = static_cast<int>(centre + half);
    if (pixel < begin || pixel > end) return std::nullopt;
    return std::max((pixel - begin + .5) * (size + 2) / (end - begin + 1) - .5, 0.) - 1;
  };
  const auto u = place(box.x1, box.x2, x), v = place(box.y1, box.y2, y);
  if (!u || !v) return 0;
  double sum = 0;
  for (int r = 0; r < size; ++r)
    for (int c = 0; c < size; ++c)
      sum += std::max(1 - std::abs(*u - c), 0.) * std::max(1 - std::abs(*v - r), 0.) *
             mask[static_cast<std::size_t>(r) * size + c];
  return sum;
}

TEST(Paste, MatchesPixelwiseSampling) {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> probability(0, 1), at(-30, 60), extent(0.2F, 70);
  const int height = 37, width = 53;
  for (const float threshold : {0.5F, 0.2F, 0.9F})
    for (int i = 0; i < 150; ++i) {
      const int size = i % 3 == 0 ? 28 : 1 + static_cast<int>(random() % 14);
      std::vector<float> mask(static_cast<std::size_t>(size) * size);
      for (auto& p : mask)
        p = random() % 4 == 0 ? std::round(probability(random)) : probability(random);
      const float x = at(random), y = at(random);
      const Box box{x, y, x + extent(random), y + extent(random)};
      for (const auto& [rule, expected] :
           {std::pair(&paste, &sampled), std::pair(&paste_framed, &sampled_framed)}) {
        std::vector<std::uint8_t> pasted(height * width);
        const Rle rle = rule(mask.data(), size, box, height, width, threshold);
        decode(rle, pasted.data());
        EXPECT_EQ(encode(pasted.data(), height, width), rle) << "the counts are not canonical";
        for (int row = 0; row < height; ++row)
          for (int column = 0; column < width; ++column) {
            const double value = expected(mask, size, box, column, row);
            if (std::abs(value - threshold) < 1e-4)
              continue;  // may differ between float and double
            ASSERT_EQ(pasted[row * width + column], value > threshold) << value;
          }
      }
    }
}

TEST(Paste, AcceptsThinAndEmptyBoxes) {
  const std::vector<float> ones(4, 1);
  EXPECT_EQ(area(paste_framed(ones.data(), 2, Box{4, 4, 4, 4}, 10, 10)), 1U);  // one pixel
  EXPECT_EQ(paste_framed(ones.data(), 2, Box{-1e6F, -1e6F, 1e6F, 1e6F}, 10, 10),
            (Rle{10, 10, {0, 100}}));
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const Box& box : {Box{50, 50, 60, 60}, Box{-9, -9, -5, -5}, Box{nan, 0, 5, 5},
                         Box{0, 0, inf, 5}, Box{0, 0, 5, nan}})
    EXPECT_EQ(paste_framed(ones.data(), 2, box, 10, 10), (Rle{10, 10, {100}}));
}

TEST(Paste, FillsBoxWithFullMask) {
  const std::vector<float> ones(28 * 28, 1);
  const Rle mask = paste(ones.data(), 28, Box{3, 2, 13, 7}, 20, 30);
  EXPECT_EQ(area(mask), 50U);
  EXPECT_EQ(bounding_box(mask), (Box{3, 2, 13, 7}));
  EXPECT_EQ(paste(ones.data(), 2, Box{-1e6F, -1e6F, 1e6F, 1e6F}, 10, 10), (Rle{10, 10, {0, 100}}));
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  for (const Box& box : {Box{5, 5, 5, 9}, Box{9, 5, 5, 9}, Box{50, 50, 60, 60}, Box{-9, -9, -5, -5},
                         Box{nan, 0, 5, 5}, Box{0, 0, inf, 5}, Box{0, 0, 5, nan}})
    EXPECT_EQ(paste(ones.data(), 2, box, 10, 10), (Rle{10, 10, {100}}));
}

TEST(Crop, SamplesPixelsAtCellCentres) {
  std::mt19937 random(2);
  std::uniform_real_distribution<float> at(-10, 40), extent(0, 50);
  for (int i = 0; i < 200; ++i) {
    const auto bitmap = random_bitmap(random, 31, 23);
    const float x = at(random), y = at(random);
    const Box box{x, y, x + extent(random), y + extent(random)};
    std::vector<std::uint8_t> out(14 * 14);
    crop_in_box(encode(bitmap.data(), 31, 23), box, 14, out.data());
    const double wide = std::max(double{box.x2} - box.x1, 0.1),
                 high = std::max(double{box.y2} - box.y1, 0.1);
    for (int r = 0; r < 14; ++r)
      for (int c = 0; c < 14; ++c) {
        const double px = std::floor(box.x1 + (c + .5) * (wide / 14)),
                     py = std::floor(box.y1 + (r + .5) * (high / 14));
        const bool visible = px >= 0 && py >= 0 && px < 23 && py < 31;
        ASSERT_EQ(out[r * 14 + c],
                  visible ? bitmap[static_cast<int>(py) * 23 + static_cast<int>(px)] : 0);
      }
  }
}

TEST(Crop, ReturnsMaskForWholeImage) {
  std::mt19937 random(3);
  const auto bitmap = random_bitmap(random, 16, 16);
  std::vector<std::uint8_t> out(16 * 16);
  crop_in_box(encode(bitmap.data(), 16, 16), Box{0, 0, 16, 16}, 16, out.data());
  EXPECT_EQ(out, bitmap);
}

}  // namespace
}  // namespace millrace::coco
