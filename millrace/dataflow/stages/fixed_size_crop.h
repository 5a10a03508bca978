#pragma once

#include <opencv2/core/types.hpp>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/detection/transforms.h"

namespace millrace {

/// Gives every image one size: cuts at a random place what is longer, pads right and below what is
/// shorter (detectron2's FixedSizeCrop; there one random number places both axes, here each has its
/// own). For training only: a sample knows nothing of the window's place.
struct FixedSizeCrop {
  static constexpr std::string_view kName = "fixed_size_crop";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t width = 1024, height = 1024;  // pixels
  std::int64_t pad_value = 128;
  Visibility visibility;

  Sample operator()(Sample sample, Rng& rng) const;
  /// The window on an image of size `image`; it reaches beyond a smaller one.
  cv::Rect draw(cv::Size image, Rng& rng) const;

  void describe(Options& o) {
    o.add("width", width, "of the result", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("height", height, "of the result", {.min = 1, .max = 16384, .unit = "pixels"});
    o.add("pad_value", pad_value, "level of the padding", {.min = 0, .max = 255});
    visibility.describe(o);
  }
};

}  // namespace millrace
