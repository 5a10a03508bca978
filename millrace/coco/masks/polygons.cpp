// Polygons as pixels, exactly as COCO's rleFrPoly, but without listing every grid point of the
// outline: only where it crosses the middle of a pixel column do inside and outside swap.
#include <algorithm>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/masks/polygon_edge.h"
#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

/// Where the outline crosses pixel columns, as positions counted down the columns, ascending.
class Crossings {
 public:
  Crossings(std::span<const double> polygon, std::uint32_t height, std::uint32_t width) {
    const std::size_t points = polygon.size() / 2;
    for (std::size_t i = 0; i < points; ++i) {
      const std::size_t next = i + 1 < points ? i + 1 : 0;
      PolygonEdge(polygon[2 * i], polygon[2 * i + 1], polygon[2 * next], polygon[2 * next + 1])
          .each_crossing(height, width,
                         [this](std::uint32_t position) { positions_.push_back(position); });
    }
    std::sort(positions_.begin(), positions_.end());
    if (positions_.size() % 2 == 1) positions_.push_back(height * width);
  }

  /// Calls `inside(begin, end)` for each stretch of inside pixels.
  template <typename F>
  void each(F inside) const {
    for (std::size_t i = 0; i < positions_.size(); i += 2) inside(positions_[i], positions_[i + 1]);
  }

 private:
  std::vector<std::uint32_t> positions_;
};

}  // namespace

Rle from_polygons(std::span<const Polygon> polygons, std::uint32_t height, std::uint32_t width) {
  std::vector<Rle> parts;
  parts.reserve(polygons.size());
  for (const Polygon& polygon : polygons) {
    RunWriter part(height, width);
    Crossings(polygon, height, width).each([&](std::uint32_t begin, std::uint32_t end) {
      part.add(begin, end);
    });
    parts.push_back(std::move(part).finish());
  }
  if (parts.empty()) return RunWriter(height, width).finish();
  return parts.size() == 1 ? std::move(parts[0]) : merge(parts);
}

void rasterize_in_box(std::span<const Polygon> polygons, const Box& box, int size,
                      std::uint8_t* out) {
  constexpr double kThinnest = 0.1;  // pixels; detectron2's guard against a box without extent
  const double scale_x = size / std::max<double>(double{box.x2} - box.x1, kThinnest);
  const double scale_y = size / std::max<double>(double{box.y2} - box.y1, kThinnest);
  const auto side = static_cast<std::uint32_t>(size);
  std::fill_n(out, std::size_t{side} * side, std::uint8_t{0});
  Polygon scaled;
  for (const Polygon& polygon : polygons) {
    scaled.resize(polygon.size());
    for (std::size_t i = 0; i < polygon.size(); ++i)
      scaled[i] = i % 2 == 0 ? (polygon[i] - box.x1) * scale_x : (polygon[i] - box.y1) * scale_y;
    Crossings(scaled, side, side).each([&](std::uint32_t begin, std::uint32_t end) {
      for (std::uint32_t i = begin; i < end; ++i) out[i % side * side + i / side] = 1;
    });
  }
}

}  // namespace millrace::coco
