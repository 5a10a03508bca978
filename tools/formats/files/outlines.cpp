#include "millrace/tools/formats/files/outlines.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

namespace millrace::formats {
namespace {

/// A side of a pixel from a corner, with the inside to its right. Directions turn right one by one.
struct PixelSide {
  std::uint64_t corner;    // y * (width + 1) + x
  std::uint8_t direction;  // 0 right, 1 down, 2 left, 3 up
  bool taken = false;
};

std::vector<PixelSide> pixel_sides(const std::vector<std::uint8_t>& bitmap, std::int64_t width,
                                   std::int64_t height) {
  const auto inside = [&](std::int64_t x, std::int64_t y) {
    return x >= 0 && y >= 0 && x < width && y < height &&
           bitmap[static_cast<std::size_t>(y * width + x)] != 0;
  };
  std::vector<PixelSide> sides;
  const auto add = [&](std::int64_t x, std::int64_t y, std::uint8_t direction) {
    sides.push_back({static_cast<std::uint64_t>(y * (width + 1) + x), direction});
  };
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      if (!inside(x, y)) continue;
      if (!inside(x, y - 1)) add(x, y, 0);
      if (!inside(x + 1, y)) add(x + 1, y, 1);
      if (!inside(x, y + 1)) add(x + 1, y + 1, 2);
      if (!inside(x - 1, y)) add(x, y + 1, 3);
    }
  std::ranges::sort(sides, {},
                    [](const PixelSide& one) { return std::pair(one.corner, one.direction); });
  return sides;
}

double squared_distance(const coco::Polygon& a, std::size_t i, const coco::Polygon& b,
                        std::size_t j) {
  const double dx = a[2 * i] - b[2 * j], dy = a[2 * i + 1] - b[2 * j + 1];
  return dx * dx + dy * dy;
}

}  // namespace

std::vector<coco::Polygon> outlines_of(const coco::Rle& mask) {
  const auto width = std::int64_t{mask.width}, height = std::int64_t{mask.height};
  std::vector<std::uint8_t> bitmap(static_cast<std::size_t>(width * height));
  coco::decode(mask, bitmap.data());
  auto sides = pixel_sides(bitmap, width, height);
  const std::array<std::int64_t, 4> steps = {1, width + 1, -1, -(width + 1)};
  std::vector<coco::Polygon> loops;
  for (auto& start : sides) {
    if (start.taken) continue;
    coco::Polygon loop;
    auto* side = &start;
    std::uint8_t last = 4;  // no direction
    while (!side->taken) {
      side->taken = true;
      if (side->direction != last) {
        loop.push_back(static_cast<double>(side->corner % static_cast<std::uint64_t>(width + 1)));
        loop.push_back(static_cast<double>(side->corner / static_cast<std::uint64_t>(width + 1)));
      }
      last = side->direction;
      const auto corner = side->corner + static_cast<std::uint64_t>(steps[last]);
      // Where two pixels touch at a corner, the turn to the right stays at this one's.
      auto next = std::ranges::lower_bound(sides, corner, {}, &PixelSide::corner);
      if (next == sides.end()) break;
      if (next + 1 != sides.end() && (next + 1)->corner == corner &&
          (next + 1)->direction == (last + 1) % 4)
        ++next;
      side = &*next;
    }
    if (start.direction == last && loop.size() > 8) loop.erase(loop.begin(), loop.begin() + 2);
    loops.push_back(std::move(loop));
  }
  return loops;
}

coco::Polygon bridged(std::span<const coco::Polygon> polygons) {
  coco::Polygon whole = polygons[0];
  std::vector<bool> joined(polygons.size());
  joined[0] = true;
  for (std::size_t round = 1; round < polygons.size(); ++round) {
    std::size_t best = 0, from = 0, to = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < polygons.size(); ++k) {
      if (joined[k]) continue;
      for (std::size_t i = 0; i < whole.size() / 2; ++i)
        for (std::size_t j = 0; j < polygons[k].size() / 2; ++j)
          if (const double far = squared_distance(whole, i, polygons[k], j); far < least)
            least = far, best = k, from = i, to = j;
    }
    const auto& part = polygons[best];
    joined[best] = true;
    coco::Polygon detour;  // the part from its corner round to it, and back
    for (std::size_t j = 0; j <= part.size() / 2; ++j) {
      const auto at = (to + j) % (part.size() / 2);
      detour.insert(detour.end(), {part[2 * at], part[2 * at + 1]});
    }
    detour.insert(detour.end(), {whole[2 * from], whole[2 * from + 1]});
    whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(2 * from + 2), detour.begin(),
                 detour.end());
  }
  return whole;
}

}  // namespace millrace::formats
