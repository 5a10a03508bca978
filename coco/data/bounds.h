// The bounding box of a shape in exact coordinates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <variant>
#include <vector>

#include "millrace/coco/data/annotations.h"

namespace millrace::coco {

struct Bounds {
  double x1 = std::numeric_limits<double>::infinity(), y1 = x1, x2 = -x1, y2 = -x1;

  double area() const { return std::max(0., x2 - x1) * std::max(0., y2 - y1); }
  Bounds in(const Bounds& other) const {
    return {std::max(x1, other.x1), std::max(y1, other.y1), std::min(x2, other.x2),
            std::min(y2, other.y2)};
  }
};

/// Returns the bounds of a shape. REQUIRES: polygons or a mask.
inline Bounds bounds_of(const Segmentation& shape) {
  if (const auto* mask = std::get_if<Rle>(&shape)) {
    const Box box = bounding_box(*mask);
    return {box.x1, box.y1, box.x2, box.y2};
  }
  Bounds bounds;
  for (const Polygon& polygon : std::get<std::vector<Polygon>>(shape))
    for (std::size_t i = 0; i + 1 < polygon.size(); i += 2) {
      bounds.x1 = std::min(bounds.x1, polygon[i]), bounds.x2 = std::max(bounds.x2, polygon[i]);
      bounds.y1 = std::min(bounds.y1, polygon[i + 1]);
      bounds.y2 = std::max(bounds.y2, polygon[i + 1]);
    }
  return bounds;
}

}  // namespace millrace::coco
