// Mask targets from polygons on the GPU, bit for bit coco::rasterize_in_box: each region's polygons
// are scaled into it and rasterised by COCO's rule.
#pragma once

#include <cstdint>

#include "millrace/coco/masks/polygon_edge.h"
#include "millrace/plugins/cuda/host_device.h"

namespace millrace::cuda {

/// Polygons of all objects, flattened.
struct PolygonTable {
  const double* points;                // x0 y0 x1 y1 ...
  const std::int64_t* polygon_begins;  // (P + 1) places in `points`, in points
  const std::int64_t* object_begins;   // (R + 1) places in `polygon_begins`
};

/// How pixels of the image become cells of a region.
struct RegionGrid {
  double x, y, scale_x, scale_y;

  MILLRACE_HOST_DEVICE RegionGrid(const float* box, int size) : x(box[0]), y(box[1]) {
    constexpr double kThinnest = 0.1;  // as rasterize_in_box
    const double width = static_cast<double>(box[2]) - x, height = static_cast<double>(box[3]) - y;
    scale_x = size / (width > kThinnest ? width : kThinnest);
    scale_y = size / (height > kThinnest ? height : kThinnest);
  }

  /// Side `i` of the polygon of points [begin, end), in cells.
  MILLRACE_HOST_DEVICE coco::PolygonEdge side(const double* points, std::int64_t begin,
                                              std::int64_t end, std::int64_t i) const {
    const double* const from = points + (begin + i) * 2;
    const double* const to = points + (begin + i + 1 < end ? begin + i + 1 : begin) * 2;
    return {(from[0] - x) * scale_x, (from[1] - y) * scale_y, (to[0] - x) * scale_x,
            (to[1] - y) * scale_y};
  }
};

/// Object r in box r of boxes (R, 4) -> targets (R, size, size), 0 or 1. size at most 64.
void mask_targets(const PolygonTable& polygons, const float* boxes, std::int64_t count, int size,
                  float* targets, Stream stream);

}  // namespace millrace::cuda
