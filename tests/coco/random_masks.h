// Random masks and polygons.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "millrace/coco/masks/masks.h"

namespace millrace::testing {

/// Returns a bitmap [height, width] with blobs and speckles, from nearly empty to nearly full.
inline std::vector<std::uint8_t> random_bitmap(std::mt19937& random, std::uint32_t height,
                                               std::uint32_t width) {
  std::vector<std::uint8_t> bitmap(std::size_t{height} * width);
  const unsigned change = 2 + random() % 40;  // one in `change` pixels toggles inside and outside
  bool inside = random() % 2;
  for (auto& pixel : bitmap) {
    if (random() % change == 0) inside = !inside;
    pixel = inside;
  }
  return bitmap;
}

/// Returns a polygon around (and often beyond) a width x height image, with two decimals as in
/// COCO.
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
