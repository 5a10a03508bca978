// Points, boxes and polygons moved in the plane and cut at the border of an image. Continuous
// coordinates: pixel i spans i .. i+1. Pure; any thread.
#pragma once

#include <opencv2/core/matx.hpp>
#include <opencv2/core/types.hpp>
#include <span>

#include "millrace/coco/masks/masks.h"

namespace millrace {

/// The part of a polygon inside 0 .. width, 0 .. height (Sutherland and Hodgman 1974). Where the
/// outline leaves and comes back, the parts hang together by bridges along the border, which
/// rasterise to nothing. Empty where no area is inside; the same numbers where all of it is.
coco::Polygon clipped(const coco::Polygon& polygon, cv::Size image);

/// The part of a box inside the image.
Box clipped(const Box& box, cv::Size image);

/// The smallest box around polygons. REQUIRES: at least one point.
Box bounds(std::span<const coco::Polygon> polygons);

/// The point at matrix * (x, y, 1).
cv::Vec2d moved(double x, double y, const cv::Matx23d& matrix);
/// The box around the moved corners.
Box moved(const Box& box, const cv::Matx23d& matrix);

/// The matrix of the way back. Throws std::invalid_argument where there is none.
cv::Matx23d inverse(const cv::Matx23d& matrix);

}  // namespace millrace
