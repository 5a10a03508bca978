// Rasterizes polygons exactly like COCO's rleFrPoly, but without listing every grid point of the
// outline: inside and outside swap only where it crosses the middle of a pixel column.
#include <algorithm>

#include "millrace/coco/masks/masks.h"
#include "millrace/coco/masks/polygon_edge.h"
#include "millrace/coco/masks/run_writer.h"

namespace millrace::coco {
namespace {

/// Returns the column-major positions at which the outline enters and leaves pixel columns, in
/// ascending order.
std::vector<std::uint32_t> crossings(const Polygon& polygon, std::uint32_t height,
                                     std::uint32_t width) {
  std::vector<std::uint32_t> positions;
  const std::size_t size = polygon.size() / 2 * 2;
  for (std::size_t i = 0; i < size; i += 2) {
    const std::size_t next = i + 2 < size ? i + 2 : 0;
    PolygonEdge(polygon[i], polygon[i + 1], polygon[next], polygon[next + 1])
        .each_crossing(height, width,
                       [&](std::uint32_t position) { positions.push_back(position); });
  }
  std::ranges::sort(positions);
  if (positions.size() % 2 == 1) positions.push_back(height * width);
  return positions;
}

}  // namespace

Rle from_polygons(std::span<const Polygon> polygons, std::uint32_t height, std::uint32_t width) {
  std::vector<Rle> parts;
  parts.reserve(polygons.size());
  for (const Polygon& polygon : polygons) {
    RunWriter part(height, width);
    const auto edges = crossings(polygon, height, width);
    for (std::size_t i = 0; i < edges.size(); i += 2) part.add(edges[i], edges[i + 1]);
    parts.push_back(std::move(part).finish());
  }
  if (parts.empty()) return RunWriter(height, width).finish();
  return parts.size() == 1 ? std::move(parts[0]) : merge(parts);
}

void rasterize_in_box(std::span<const Polygon> polygons, const Box& box, int size,
                      std::uint8_t* out) {
  constexpr double kThinnest = 0.1;  // pixels; minimum box size as in detectron2
  const double scale_x = size / std::max<double>(double{box.x2} - box.x1, kThinnest);
  const double scale_y = size / std::max<double>(double{box.y2} - box.y1, kThinnest);
  const auto side = static_cast<std::uint32_t>(size);
  std::fill_n(out, std::size_t{side} * side, std::uint8_t{0});
  Polygon scaled;
  for (const Polygon& polygon : polygons) {
    scaled.resize(polygon.size());
    for (std::size_t i = 0; i < polygon.size(); ++i)
      scaled[i] = i % 2 == 0 ? (polygon[i] - box.x1) * scale_x : (polygon[i] - box.y1) * scale_y;
    const auto edges = crossings(scaled, side, side);
    for (std::size_t e = 0; e < edges.size(); e += 2)
      for (std::uint32_t i = edges[e]; i < edges[e + 1]; ++i) out[i % side * side + i / side] = 1;
  }
}

}  // namespace millrace::coco
