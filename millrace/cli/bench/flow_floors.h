// The physical floors under a flow of images: decoding, resizing and copying them, each alone.
#pragma once

#include <opencv2/core/types.hpp>
#include <span>
#include <string>

namespace millrace::cli {

/// A file and the size at which the flow delivers it.
struct FloorImage {
  std::string file;
  cv::Size delivered;
};

/// All zeros where no file is a JPEG.
struct FlowFloors {
  double decode_images_per_s = 0;      // all threads together
  double decode_images_per_cpu_s = 0;  // the same, by the time on a core
  // CPU time per image, of one thread that does nothing else
  double decode_ms = 0, resize_ms = 0, copy_ms = 0;
  double sum_ms() const { return decode_ms + resize_ms + copy_ms; }
};

/// TurboJPEG from memory to RGB, over and over these files, with so many threads; then by one
/// thread each file decoded, resized as the flow does, and copied once. Every buffer is used again.
/// Files that are no JPEGs are left out. Takes `seconds` twice.
FlowFloors measure_floors(std::span<const FloorImage> images, int threads, double seconds);

}  // namespace millrace::cli
