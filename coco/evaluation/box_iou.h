// The IoU of two boxes as COCO computes it.
#pragma once

#include <algorithm>

namespace millrace::coco {

/// Returns the IoU of a detection's and an object's box, each x, y, width, height. With a crowd,
/// the union is the detection's area. Bitwise equal to COCO's bbIou, including the order of the
/// sums.
inline double box_iou(const double* d, const double* g, bool crowd) {
  const double width = std::min(d[2] + d[0], g[2] + g[0]) - std::max(d[0], g[0]);
  if (width <= 0) return 0;
  const double height = std::min(d[3] + d[1], g[3] + g[1]) - std::max(d[1], g[1]);
  if (height <= 0) return 0;
  const double shared = width * height, area = d[2] * d[3];
  return shared / (crowd ? area : area + g[2] * g[3] - shared);
}

}  // namespace millrace::coco
