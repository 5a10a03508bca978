// The stage that resizes an image with its objects.
#pragma once

#include <algorithm>
#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Returns the size of an image of size `image` after its shorter side becomes `short_side` pixels
/// long, or less if the longer side would exceed `max_side`. shortest_edge_size rounds as
/// detectron2's ResizeShortestEdge; torchvision_size truncates as torchvision's
/// GeneralizedRCNNTransform and YOLOX.
cv::Size shortest_edge_size(cv::Size image, std::int64_t short_side, std::int64_t max_side);
cv::Size torchvision_size(cv::Size image, std::int64_t short_side, std::int64_t max_side);

/// Resizes the shorter side to a given length, or less if the longer would exceed its maximum.
struct ResizeShortestEdge {
  static constexpr std::string_view kName = "resize_shortest_edge";
  static constexpr std::string_view kAfter = "decode";
  Options::Ints short_side = {800};  // pixels; several = one of them at random
  bool range = false;                // short_side is {lowest, highest}
  std::int64_t max_side = 1333;      // pixels
  ResizeStyle style = ResizeStyle::opencv;

  Sample operator()(Sample sample, Rng& rng) const;
  /// Returns the size of an image of size `image` after its shorter side becomes `side` long.
  cv::Size size_of(cv::Size image, std::int64_t side) const;
  /// Returns the maximum length of the shorter side.
  std::int64_t largest_short_side() const {
    return std::min(*std::ranges::max_element(short_side), max_side);
  }
  /// Returns the size for an image that is wider than high.
  std::optional<cv::Size> largest_output(std::optional<cv::Size>) const {
    return cv::Size(static_cast<int>(max_side), static_cast<int>(largest_short_side()));
  }
  bool draws() const { return range || short_side.size() > 1; }

  /// Throws std::invalid_argument for a `range` that is not two lengths, the shorter first.
  void check() const;

  void describe(Options& o) {
    o.add("short_side", short_side,
          "length of the shorter side after resizing; several = one of them at random",
          {.min = 1, .max = 16384, .unit = "pixels", .least = 1})
        .follows("data.short_side");
    o.add("range", range, "draw short_side from a range [lowest, highest] instead of a list")
        .follows("data.short_side_range");
    o.add("max_side", max_side, "maximum length of the longer side",
          {.min = 1, .max = 65535, .unit = "pixels"})
        .follows("data.max_side");
    o.add("style", style,
          "rounding of sides and resizing of masks: opencv = sides rounded, polygons scaled; "
          "detectron2 = as opencv, with Pillow's antialiasing and without reduced_decoding; "
          "torchvision = sides truncated, masks rasterised first; yolox = sides truncated, "
          "polygons scaled; square = both sides short_side, max_side unused")
        .follows("data.resize_style");
  }
};

}  // namespace millrace
