#pragma once

#include <opencv2/core/types.hpp>
#include <string>
#include <string_view>

#include "millrace/base/random.h"
#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Resizes so that the shorter side has a given length, or less where the longer would pass its bound.
struct ResizeShortestEdge {
  static constexpr std::string_view kName = "resize_shortest_edge";
  static constexpr std::string_view kAfter = "decode";
  Options::Ints short_side = {800};  // pixels; several: one of them at random
  bool range = false;                // short_side is {lowest, highest}
  std::int64_t max_side = 1333;      // pixels
  std::string style = "detectron2";

  static ResizeShortestEdge from(const DataOptions& data) {
    return {data.short_side, data.short_side_range, data.max_side, data.resize_style};
  }

  Sample operator()(Sample sample, Rng& rng) const;
  /// The size of an image of size `image` once its shorter side is to be `side` long.
  cv::Size size_of(cv::Size image, std::int64_t side) const;
  bool draws() const { return range || short_side.size() > 1; }

  /// Throws std::invalid_argument where there is no side to choose, or `range` is not two, the shorter first.
  void check() const;

  void describe(Options& o) {
    o.add("short_side", short_side, "length of the shorter side; several: one of them at random",
          {.min = 1, .max = 16384, .unit = "pixels", .least = 1})
        .follow("data.short_side");
    o.add("range", range, "short_side is [lowest, highest] instead of choices")
        .follow("data.short_side_range");
    o.add("max_side", max_side, "the longer side never passes this",
          {.min = 1, .max = 65535, .unit = "pixels"})
        .follow("data.max_side");
    o.add("style", style,
          "how sides become whole pixels and masks follow: rounded, polygons scaled (detectron2); "
          "cut, bitmaps sampled (torchvision)",
          {"detectron2", "torchvision"})
        .follow("data.resize_style");
  }
};

/// The size that detectron2 gives an image, its rounding included.
cv::Size shortest_edge_size(cv::Size size, std::int64_t short_side, std::int64_t max_side);

/// The size that torchvision's GeneralizedRCNNTransform gives it: cut to whole pixels.
cv::Size torchvision_size(cv::Size size, std::int64_t short_side, std::int64_t max_side);

}  // namespace millrace
