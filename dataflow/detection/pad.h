// Batches of images of several sizes: the zeros around them, and the stage that makes a batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <opencv2/core/mat.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// The size with sides rounded up to multiples of `divisor`.
cv::Size padded_size(cv::Size size, std::int64_t divisor);

/// Writes an image into the top left corner of its slot of a batch and clears the rest.
void fill_slot(const LazyImage& image, cv::Mat slot);

/// Width and height of "1344x800". Throws std::invalid_argument for other text.
cv::Size parse_shape(const std::string& text);

/// Some images of a batch.
struct BatchPart {
  Batch batch;
  std::vector<std::size_t> places;  // of its images in the whole batch, ascending
};

/// A batch cut into parts whose images have the padded size that each would have alone, by their
/// first images: the batch itself if all have its size or its divisor is not known.
std::vector<BatchPart> parts_of_one_size(const Batch& batch);

/// Puts samples side by side into one batch, each in the top left corner of its slot, zero around
/// it. Slots are as large as the largest image, or the smallest of some `shapes` that fits: then a
/// model sees few shapes, or a single one.
struct Pad {
  static constexpr std::string_view kName = "pad";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t divisor = 32;  // pixels; slots are multiples of it
  Options::Strings shapes;  // "1344x800": width and height in pixels; empty: as large as the images

  /// Throws as shape_for and check_sample.
  Batch operator()(std::vector<Sample> samples) const;

  /// The slot for images of up to `size`. Throws ConfigError if it fits into none of the shapes.
  cv::Size shape_for(cv::Size size) const;

  /// The slot for images of up to `input`, or the largest of the shapes.
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const;

  /// Throws std::invalid_argument for an invalid shape.
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
