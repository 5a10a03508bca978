// Batches of images of several sizes: zero padding, and the stage that makes a batch.
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

/// Returns the size with sides rounded up to multiples of `divisor`.
cv::Size padded_size(cv::Size size, std::int64_t divisor);

/// Writes an image into the top left corner of its slot in a batch and sets the rest to zero.
void fill_slot(const LazyImage& image, cv::Mat slot);

/// Parses "1344x800", width and height in pixels. Throws std::invalid_argument for other text.
cv::Size parse_shape(const std::string& text);

/// A subset of the images of a batch.
struct BatchPart {
  Batch batch;
  std::vector<std::size_t> places;  // indices of its images in the whole batch, ascending
};

/// Splits a batch into parts of images with the same padded size, which is the size that each would
/// have alone, ordered by first image. Returns the batch itself if all images have its size or its
/// divisor is unknown.
std::vector<BatchPart> split_by_padded_size(const Batch& batch);

/// Joins samples to a batch, each in the top left corner of its slot, with zeros around it. Slots
/// are as large as the largest image, or the smallest of some `shapes` that fits; a model then gets
/// few shapes or only one.
struct Pad {
  static constexpr std::string_view kName = "pad";
  static constexpr std::string_view kAfter = "decode";
  std::int64_t divisor = 32;  // pixels; slots are multiples of it
  Options::Strings shapes;    // "1344x800": width and height in pixels; empty = size of the largest
                              // image

  /// Throws as shape_for and check_sample.
  Batch operator()(std::vector<Sample> samples) const;

  /// Returns the slot for images of up to `size`. Throws ConfigError if none of the shapes fits.
  cv::Size shape_for(cv::Size size) const;

  /// Returns the slot for images of up to `input`, or the largest of the shapes.
  std::optional<cv::Size> largest_output(std::optional<cv::Size> input) const;

  /// Throws std::invalid_argument for an invalid shape.
  void check() const;

  void describe(Options& o) {
    o.add("divisor", divisor, "sides of batches are padded to a multiple of this",
          {.min = 1, .max = 1024, .unit = "pixels"})
        .follows("data.divisor");
    o.add("shapes", shapes,
          "allowed shapes of batches, each padded to the smallest that fits, such as "
          "[\"1344x800\", \"800x1344\"]; one shape = fixed size; empty = pad to divisor")
        .follows("data.pad_shapes");
  }
};

}  // namespace millrace
