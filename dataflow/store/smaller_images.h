// Images stored no larger than training needs them, with their objects.
#pragma once

#include <opencv2/core/types.hpp>
#include <string>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// Images whose longer side exceeds `max_side` are resized to it (averages over areas) and encoded
/// as JPEG, colours at half the resolution each way; all others stay byte for byte.
struct SmallerImages {
  int max_side = 0;                      // pixels; 0: all stay as they are
  int quality = 90;                      // of the JPEGs, 1 .. 100
  bool strict = true;                    // see decode_rgb
  std::int64_t max_pixels = kMaxPixels;  // likewise

  /// The size at which an image of `size` is stored.
  cv::Size stored_size(cv::Size size) const;

  /// The sample as it is stored: its size, and its objects in pixels of that.
  Sample stored(Sample sample) const;

  /// An image file's bytes as they are stored, of a `sample` of the file's own size. Throws
  /// DataError if an image that is to become smaller cannot be decoded. Any thread.
  std::string stored_image(std::string bytes, const Sample& sample) const;
};

}  // namespace millrace
