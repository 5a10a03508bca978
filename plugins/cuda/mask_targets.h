// Mask targets from polygons on the GPU, with the same bits as coco::rasterize_in_box: each
// region's polygons are scaled to its box and rasterised by COCO's rule.
#pragma once

#include <cstdint>

#include "millrace/coco/masks/polygon_edge.h"
#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

/// Polygons of all objects, flattened.
struct PolygonTable {
  const double* points;                // x0, y0, x1, y1, ... in pixels
  const std::int64_t* polygon_begins;  // (P + 1) index of each polygon's first point
  const std::int64_t* object_begins;   // (G + 1) index of each object's first polygon
};

constexpr int kMostTargetCells = 256;  // maximum cells per side of a target

/// Transform from image pixels to cells of a region.
struct RegionGrid {
  double x, y, scale_x, scale_y;

  MILLRACE_HOST_DEVICE RegionGrid(const float* box, int size) : x(box[0]), y(box[1]) {
    constexpr double kThinnest = 0.1;  // in pixels, as in rasterize_in_box
    const double width = static_cast<double>(box[2]) - x, height = static_cast<double>(box[3]) - y;
    scale_x = size / (width > kThinnest ? width : kThinnest);
    scale_y = size / (height > kThinnest ? height : kThinnest);
  }

  /// Returns edge `i` of the polygon of points [begin, end), in cells.
  MILLRACE_HOST_DEVICE coco::PolygonEdge side(const double* points, std::int64_t begin,
                                              std::int64_t end, std::int64_t i) const {
    const double* const from = points + (begin + i) * 2;
    const double* const to = points + (begin + i + 1 < end ? begin + i + 1 : begin) * 2;
    return {(from[0] - x) * scale_x, (from[1] - y) * scale_y, (to[0] - x) * scale_x,
            (to[1] - y) * scale_y};
  }
};

/// Returns the mask of a cell's bit within its 32-bit word.
MILLRACE_HOST_DEVICE inline unsigned bit_of(std::uint32_t cell) { return 1U << (cell % 32); }

/// Returns 1 if an odd number of the first `count` bits are set, else 0.
MILLRACE_HOST_DEVICE inline unsigned parity_before(const unsigned* bits, std::uint32_t count) {
  unsigned all = 0;
  for (std::uint32_t word = 0; word < count / 32; ++word) all ^= bits[word];
  all ^= bits[count / 32] & (bit_of(count) - 1);
  for (int half = 16; half > 0; half /= 2) all ^= all >> half;
  return all & 1;
}

/// Calls `inside(row)` for each cell of a column inside the polygon. `flips` are the crossings of
/// its outline, a bit per cell in column-major order.
template <typename F>
MILLRACE_HOST_DEVICE void each_inside(const unsigned* flips, int size, int column, F inside) {
  auto cell = static_cast<std::uint32_t>(column * size);
  unsigned state = parity_before(flips, cell);
  for (int row = 0; row < size; ++row, ++cell) {
    state ^= (flips[cell / 32] >> (cell % 32)) & 1;
    if (state) inside(row);
  }
}

/// Rasterises object objects[r] in box r of boxes (R, 4) into targets (R, size, size), 0 or 1.
/// Throws std::invalid_argument unless `size` is 1 to kMostTargetCells.
void mask_targets(const PolygonTable& polygons, const std::int64_t* objects, const float* boxes,
                  std::int64_t count, int size, float* targets, Stream stream);

}  // namespace millrace::cuda
