// The stage that draws one image size per batch.
#pragma once

#include <algorithm>
#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Resizes all images of a batch to one square without keeping the aspect ratio: multi-scale
/// training of detectors with square inputs (RT-DETR). Each rank draws its own sides.
struct MultiScale {
  static constexpr std::string_view kName = "multi_scale";
  static constexpr std::string_view kAfter = "group_by_aspect_ratio";
  Options::Ints sides = {480, 512, 544, 576, 608, 640, 640,
                         640, 672, 704, 736, 768, 800};  // pixels

  std::vector<Sample> operator()(std::vector<Sample> group, Rng& rng) const;
  std::optional<cv::Size> largest_output(std::optional<cv::Size>) const {
    const auto side = static_cast<int>(*std::ranges::max_element(sides));
    return cv::Size(side, side);
  }
  bool draws() const { return sides.size() > 1; }

  void describe(Options& o) {
    o.add("sides", sides, "possible sides of the square; one is drawn at random for each batch",
          {.min = 1, .max = 16384, .unit = "pixels", .least = 1});
  }
};

}  // namespace millrace
