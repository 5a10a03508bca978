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
  double decode_images_per_cpu_s = 0;  // per second of CPU
  // CPU time per image on one thread
  double decode_ms = 0, resize_ms = 0, copy_ms = 0;
  double sum_ms() const { return decode_ms + resize_ms + copy_ms; }
};

/// Decodes these files from memory to RGB with TurboJPEG, again and again, on `threads` threads;
/// then decodes, resizes (as the flow does) and copies each on one thread. Buffers are reused;
/// files that are not JPEGs are left out. Takes `seconds` twice.
FlowFloors measure_floors(std::span<const FloorImage> images, int threads, double seconds);

}  // namespace millrace::cli
