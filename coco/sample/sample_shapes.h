// Outlines of the sample's objects, their rasterization, and the tracing of bitmaps. Pure
// functions; thread-safe.
#pragma once

#include <opencv2/core.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "millrace/base/random.h"

namespace millrace::coco {

/// Closed contours in pixels, filled by the even-odd rule, so that a contour inside another is a
/// hole.
using Outline = std::vector<std::vector<cv::Point2d>>;

/// A kind of object, which is a category of the sample data set.
struct Kind {
  std::string_view name;
  Outline (*draw)(Rng& rng);  // draws an outline around the origin, of any size
  // Distance between neighbours in a crowd, relative to the square root of their area.
  double pitch;
};

/// Returns all kinds. Category ids are positions in this list plus one.
std::span<const Kind> kinds();

/// Returns an outline of a kind around the origin with `area` square pixels, randomly rotated,
/// stretched and bent.
Outline draw_outline(const Kind& kind, double area, Rng& rng);

/// Returns a slightly bent stick around `centre`; it belongs to no kind.
Outline draw_stick(cv::Point2d centre, double angle, double length, double width, Rng& rng);

/// An outline rasterized on the pixel grid.
struct Stamp {
  cv::Point origin;    // upper left pixel of the patch in the picture; may be outside it
  cv::Mat1b coverage;  // coverage of each pixel by the outline, 0..255
  int area = 0;        // number of pixels at least half covered, inside the picture or not

  cv::Rect box() const { return {origin, coverage.size()}; }
};

Stamp rasterize(const Outline& outline);

/// A closed boundary through the midpoints of the pixel edges between inside and outside.
struct Boundary {
  std::vector<cv::Point2f> points;  // in pixels; pixel (0, 0) spans 0..1
  bool hole = false;                // true if it surrounds outside pixels within the inside
};

/// Returns every boundary of a mask (non-zero = inside). Pixels that touch only at a corner are
/// separate.
std::vector<Boundary> trace_boundaries(const cv::Mat1b& mask);

}  // namespace millrace::coco
