// Lower bounds of the time that a flow of images needs: decoding, resizing and copying, each
// measured alone.
#pragma once

#include <opencv2/core/types.hpp>
#include <span>
#include <string>

namespace millrace::cli {

/// An image file and the size at which the flow delivers it.
struct DeliveredImage {
  std::string file;
  cv::Size delivered;
};

/// Measured lower bounds; all 0 if no file is a JPEG.
struct FlowLowerBounds {
  double decode_images_per_s = 0;      // all threads together
  double decode_images_per_cpu_s = 0;  // per second of CPU time
  // CPU time per image on one thread.
  double decode_ms = 0, resize_ms = 0, copy_ms = 0;
  double sum_ms() const { return decode_ms + resize_ms + copy_ms; }
};

/// Decodes the files from memory to RGB with TurboJPEG on `threads` threads for `seconds`,
/// repeating them as needed; then decodes, resizes (as the flow does) and copies each on one thread
/// for another `seconds`. Buffers are reused. Files that are not JPEGs are skipped.
FlowLowerBounds measure_lower_bounds(std::span<const DeliveredImage> images, int threads,
                                     double seconds);

}  // namespace millrace::cli
