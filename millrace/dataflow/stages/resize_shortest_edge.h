#pragma once

#include <opencv2/core/types.hpp>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/image_sizes.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Resizes so that the shorter side has a given length, or less where the longer side would exceed
/// its maximum.
struct ResizeShortestEdge {
  static constexpr std::string_view kName = "resize_shortest_edge";
  static constexpr std::string_view kAfter = "decode";
  Options::Ints short_side = {800};  // pixels; several: one of them at random
  bool range = false;                // short_side is {lowest, highest}
  std::int64_t max_side = 1333;      // pixels
  ResizeStyle style = ResizeStyle::detectron2;

  Sample operator()(Sample sample, Rng& rng) const;
  /// The size of an image of size `image` once its shorter side is to be `side` long.
  cv::Size size_of(cv::Size image, std::int64_t side) const;
  bool draws() const { return range || short_side.size() > 1; }

  /// Throws std::invalid_argument where there is no side to choose, or `range` is not two, the
  /// shorter first.
  void check() const;

  void describe(Options& o) {
    o.add("short_side", short_side, "length of the shorter side; several: one of them at random",
          {.min = 1, .max = 16384, .unit = "pixels", .least = 1});
    o.add("range", range, "short_side is [lowest, highest] instead of choices");
    o.add("max_side", max_side, "maximum length of the longer side",
          {.min = 1, .max = 65535, .unit = "pixels"});
    o.add("style", style,
          "how sides become whole pixels and masks follow: rounded, polygons scaled (detectron2); "
          "cut, bitmaps sampled (torchvision)");
  }
};

}  // namespace millrace
