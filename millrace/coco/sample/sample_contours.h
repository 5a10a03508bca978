// From a bitmap to outlines that COCO's rasteriser turns back into that bitmap.
#pragma once

#include <opencv2/core.hpp>
#include <vector>

namespace millrace::coco {

/// A closed boundary through the midpoints of the pixel edges between inside and outside.
struct Boundary {
  std::vector<cv::Point2f> points;  // in pixels; pixel (0, 0) spans 0..1
  bool hole = false;                // around outside pixels that the inside encloses
};

/// Every boundary of a mask (non-zero: inside). Pixels that touch at a corner only are apart.
std::vector<Boundary> trace_boundaries(const cv::Mat1b& mask);

}  // namespace millrace::coco
