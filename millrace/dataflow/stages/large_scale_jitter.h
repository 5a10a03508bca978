#pragma once

#include <opencv2/core/types.hpp>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/base/random.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/stages/fixed_size_crop.h"

namespace millrace {

/// Large-scale jitter (Ghiasi et al., Simple Copy-Paste, 2021): fits the image into `scale` times
/// the target size, its shape kept (detectron2's ResizeScale), then cuts or pads it to that size.
struct LargeScaleJitter {
  static constexpr std::string_view kName = "large_scale_jitter";
  static constexpr std::string_view kAfter = "decode";
  double min_scale = 0.1, max_scale = 2.0;
  FixedSizeCrop target;

  Sample operator()(Sample sample, Rng& rng) const;
  /// The size of the resized image.
  cv::Size draw(cv::Size image, Rng& rng) const;

  /// Throws std::invalid_argument where min_scale is above max_scale.
  void check() const;

  void describe(Options& o) {
    o.add("min_scale", min_scale, "least size of the image, in target sizes",
          {.min = 0.01, .max = 10});
    o.add("max_scale", max_scale, "greatest size of the image, in target sizes",
          {.min = 0.01, .max = 10});
    target.describe(o);
  }
};

}  // namespace millrace
