// Outlines of the sample's objects, to bitmaps and back. Pure; any thread may call it.
#pragma once

#include <opencv2/core.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "millrace/base/random.h"

namespace millrace::coco {

/// Closed contours in pixels, filled by the even-odd rule: a contour inside another is a hole.
using Outline = std::vector<std::vector<cv::Point2d>>;

/// One of the things that a detector learns to tell apart on the sample.
struct Kind {
  std::string_view name;
  Outline (*draw)(Rng& rng);  // about the origin, of any size
  double pitch;               // between neighbours in a crowd, over the square root of their area
};

/// Every kind there is. Category ids are positions here plus one.
std::span<const Kind> kinds();

/// An object of a kind about the origin: `area` square pixels, freely turned, stretched and bent.
Outline draw_outline(const Kind& kind, double area, Rng& rng);

/// A slightly bent stick through `centre`; it belongs to no kind.
Outline draw_stick(cv::Point2d centre, double angle, double length, double width, Rng& rng);

/// An outline on the pixel grid.
struct Stamp {
  cv::Point origin;    // the patch's upper left pixel in the picture; may lie outside it
  cv::Mat1b coverage;  // how much of each pixel the outline covers, 0..255
  int area = 0;        // pixels at least half covered, inside the picture or not

  cv::Rect box() const { return {origin, coverage.size()}; }
};

Stamp rasterize(const Outline& outline);

/// A closed boundary through the midpoints of the pixel edges between inside and outside.
struct Boundary {
  std::vector<cv::Point2f> points;  // in pixels; pixel (0, 0) spans 0..1
  bool hole = false;                // around outside pixels that the inside encloses
};

/// Every boundary of a mask (non-zero: inside). Pixels that touch at a corner only are apart.
std::vector<Boundary> trace_boundaries(const cv::Mat1b& mask);

}  // namespace millrace::coco
