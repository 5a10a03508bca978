// Images shrunk to the size that training needs, with their objects.
#pragma once

#include <opencv2/core/types.hpp>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// Resizes images whose longer side exceeds `max_side` to it (by area averages) and encodes them as
/// JPEG, with colours at half the resolution in each direction; other images are copied unchanged.
struct SmallerImages {
  int max_side = 0;                      // pixels; 0 = all stay unchanged
  int quality = 90;                      // JPEG quality, 1 .. 100
  bool strict = true;                    // see decode_rgb
  std::int64_t max_pixels = kMaxPixels;  // see decode_rgb

  /// Returns the size at which an image of `size` is stored.
  cv::Size stored_size(cv::Size size) const;

  /// Returns the sample as stored: its size, and its objects in pixels of that size.
  Sample stored(Sample sample) const;

  /// Returns the bytes of an image file as stored, for a `sample` of the file's own size. Throws
  /// DataError if an image to be shrunk cannot be decoded. Thread-safe.
  std::string stored_image(std::string bytes, const Sample& sample) const;
};

}  // namespace millrace
