// Random masks and polygons.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "millrace/coco/masks/masks.h"

namespace millrace::testing {

/// Returns a bitmap [height, width] of random runs of foreground and background pixels.
inline std::vector<std::uint8_t> random_bitmap(std::mt19937& random, std::uint32_t height,
                                               std::uint32_t width) {
  std::vector<std::uint8_t> bitmap(std::size_t{height} * width);
  const unsigned change = 2 + random() % 40;  // one in `change` pixels starts a new run
  bool inside = random() % 2;
  for (auto& pixel : bitmap) {
    if (random() % change == 0) inside = !inside;
    pixel = inside;
  }
  return bitmap;
}

/// Returns a polygon that may extend beyond a width x height image. Coordinates have two decimals,
/// as in COCO.
inline coco::Polygon random_polygon(std::mt19937& random, double width, double height) {
  std::uniform_real_distribution<double> across(-0.3 * width, 1.3 * width);
  std::uniform_real_distribution<double> down(-0.3 * height, 1.3 * height);
  coco::Polygon polygon;
  const auto points = 3 + random() % 9;
  for (std::size_t i = 0; i < points; ++i) {
    polygon.push_back(std::round(across(random) * 100) / 100);
    polygon.push_back(std::round(down(random) * 100) / 100);
  }
  return polygon;
}

}  // namespace millrace::testing
