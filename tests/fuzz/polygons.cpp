// Polygons with any coordinates become a canonical mask of the image's size, which does not depend
// on their order and starting points.
#include <algorithm>

#include "millrace/coco/masks/masks.h"
#include "tests/fuzz/laws.h"

namespace millrace::fuzz {
namespace {

using coco::Polygon;
using coco::Rle;

/// Returns a multiple of 0.01 near the image, or a double with arbitrary bits.
double coordinate(Input& input, bool near) {
  return near ? input.take<std::int16_t>() / 100. : input.take<double>();
}

}  // namespace

void check(Input input) {
  const std::uint32_t height = input.take<std::uint8_t>(), width = input.take<std::uint8_t>();
  const auto kind = input.take<std::uint8_t>();
  const std::size_t points = 1 + kind / 2 % 16;
  std::vector<Polygon> polygons;
  while (!input.empty() && polygons.size() < 8) {
    Polygon polygon;
    while (polygon.size() < 2 * points) polygon.push_back(coordinate(input, kind % 2));
    polygons.push_back(polygon);
  }

  const Rle mask = coco::from_polygons(polygons, height, width);
  MILLRACE_LAW(mask.height == height && mask.width == width);
  std::uint64_t pixels = 0;
  for (std::size_t i = 0; i < mask.counts.size(); ++i) {
    MILLRACE_LAW(mask.counts[i] > 0 || i == 0);
    pixels += mask.counts[i];
  }
  MILLRACE_LAW(pixels == std::uint64_t{height} * width);

  for (Polygon& polygon : polygons)
    std::rotate(polygon.begin(), polygon.begin() + 2, polygon.end());
  std::reverse(polygons.begin(), polygons.end());
  MILLRACE_LAW(coco::from_polygons(polygons, height, width) == mask);

  std::uint8_t cells[14 * 14];
  const Box box{static_cast<float>(width) / 3, -4, 1e3F / static_cast<float>(kind + 1),
                static_cast<float>(height)};
  coco::rasterize_in_box(polygons, box, 14, cells);
  MILLRACE_LAW(std::ranges::all_of(cells, [](std::uint8_t cell) { return cell <= 1; }));
  coco::crop_in_box(mask, box, 14, cells);
  MILLRACE_LAW(std::ranges::all_of(cells, [](std::uint8_t cell) { return cell <= 1; }));
}

}  // namespace millrace::fuzz
