// The outlines of the sample's objects, and their rasterisation. Pure; any thread may call it.
#pragma once

#include <array>
#include <opencv2/core.hpp>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace millrace::coco {

/// What a detector learns to tell apart on the sample. Category ids are positions here plus one.
inline constexpr std::array<std::string_view, 6> kKinds = {"star", "ring", "heart", "crescent", "cross", "triangle"};

/// Closed contours in pixels, filled by the even-odd rule: a contour inside another is a hole.
using Outline = std::vector<std::vector<cv::Point2d>>;

/// An object of a kind about the origin: `area` square pixels, freely turned, stretched and bent.
/// REQUIRES: kind < kKinds.size().
Outline draw_outline(std::size_t kind, double area, Rng& rng);

/// A slightly bent stick through `centre`; it belongs to no kind.
Outline draw_stick(cv::Point2d centre, double angle, double length, double width, Rng& rng);

/// An outline on the pixel grid.
struct Stamp {
  cv::Point origin;      // of the patch's upper left pixel in the picture; may lie outside it
  cv::Mat1b coverage;    // how much of each pixel the outline covers, 0..255
  int area = 0;          // pixels at least half covered, inside the picture or not

  cv::Rect box() const { return {origin, coverage.size()}; }
};

Stamp rasterize(const Outline& outline);

}  // namespace millrace::coco
