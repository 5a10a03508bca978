#include "millrace/dataflow/image/plane.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace millrace {
namespace {

/// What is left of a polygon on one side of a line: where `sign` * coordinate <= `sign` * bound.
struct HalfPlane {
  std::size_t axis;  // 0: x, 1: y
  double bound, sign;

  bool holds(const double* point) const { return sign * point[axis] <= sign * bound; }

  coco::Polygon operator()(const coco::Polygon& polygon) const {
    coco::Polygon kept;
    const double* from = polygon.data() + polygon.size() - 2;
    for (const double* to = polygon.data(); to != polygon.data() + polygon.size(); to += 2) {
      if (holds(from) != holds(to)) {
        const double share = (bound - from[axis]) / (to[axis] - from[axis]);
        double crossing[2];
        crossing[axis] = bound;
        crossing[1 - axis] = from[1 - axis] + share * (to[1 - axis] - from[1 - axis]);
        kept.insert(kept.end(), crossing, crossing + 2);
      }
      if (holds(to)) kept.insert(kept.end(), to, to + 2);
      from = to;
    }
    return kept;
  }
};

}  // namespace

coco::Polygon clipped(const coco::Polygon& polygon, cv::Size image) {
  const double width = image.width, height = image.height;
  auto left = polygon;
  for (const auto& side :
       {HalfPlane{0, 0, -1}, HalfPlane{0, width, 1}, HalfPlane{1, 0, -1}, HalfPlane{1, height, 1}})
    if (!left.empty()) left = side(left);
  if (left.size() < 6 || bounds({&left, 1}).area() == 0) return {};
  return left;
}

Box clipped(const Box& box, cv::Size image) {
  const auto width = static_cast<float>(image.width), height = static_cast<float>(image.height);
  return {std::clamp(box.x1, 0.F, width), std::clamp(box.y1, 0.F, height),
          std::clamp(box.x2, 0.F, width), std::clamp(box.y2, 0.F, height)};
}

Box bounds(std::span<const coco::Polygon> polygons) {
  double low[2] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  double high[2] = {std::numeric_limits<double>::lowest(), std::numeric_limits<double>::lowest()};
  for (const auto& polygon : polygons)
    for (std::size_t i = 0; i < polygon.size(); ++i) {
      low[i % 2] = std::min(low[i % 2], polygon[i]);
      high[i % 2] = std::max(high[i % 2], polygon[i]);
    }
  return {static_cast<float>(low[0]), static_cast<float>(low[1]), static_cast<float>(high[0]),
          static_cast<float>(high[1])};
}

cv::Vec2d moved(double x, double y, const cv::Matx23d& matrix) {
  return matrix * cv::Vec3d(x, y, 1);
}

Box moved(const Box& box, const cv::Matx23d& matrix) {
  coco::Polygon corners;
  for (const float x : {box.x1, box.x2})
    for (const float y : {box.y1, box.y2}) {
      const auto corner = moved(x, y, matrix);
      corners.insert(corners.end(), {corner[0], corner[1]});
    }
  return bounds({&corners, 1});
}

cv::Matx23d inverse(const cv::Matx23d& matrix) {
  const double a = matrix(0, 0), b = matrix(0, 1), c = matrix(1, 0), d = matrix(1, 1);
  const double determinant = a * d - b * c;
  if (!(std::abs(determinant) > 0)) throw std::invalid_argument("warp: the matrix has no inverse");
  const cv::Matx22d back(d / determinant, -b / determinant, -c / determinant, a / determinant);
  const auto origin = back * cv::Vec2d(matrix(0, 2), matrix(1, 2));
  return {back(0, 0), back(0, 1), -origin[0], back(1, 0), back(1, 1), -origin[1]};
}

}  // namespace millrace
