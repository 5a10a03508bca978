// The stage that makes a batch of samples.
#pragma once

#include <opencv2/core/types.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Puts samples side by side into one batch, each in the top left corner of its slot, zero around
/// it. Slots are as large as the largest image, or the smallest of some `shapes` that fits: then a
/// model sees few shapes, or a single one.
struct Pad {
  static constexpr std::string_view kName = "pad";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t divisor = 32;  // slots are multiples of so many pixels
  Options::Strings shapes;  // "1344x800": width and height in pixels; none: as large as the images

  /// Throws as shape_for and check_sample.
  Batch operator()(std::vector<Sample> samples) const;

  /// The slot for images of up to `size`. Throws ConfigError where it fits into none of the shapes.
  cv::Size shape_for(cv::Size size) const;

  /// The slot for images of up to `input`, or the largest of the shapes.
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const;

  /// Throws std::invalid_argument for a shape that is none.
  void check() const;

  void describe(Options& o) {
    o.add("divisor", divisor, "sides are rounded up to a multiple of it",
          {.min = 1, .max = 1024, .unit = "pixels"})
        .follows("data.divisor");
    o.add("shapes", shapes,
          "batches have the smallest of these shapes that fits instead, such as [\"1344x800\", "
          "\"800x1344\"]; one: a fixed size")
        .follows("data.pad_shapes");
  }
};

}  // namespace millrace
