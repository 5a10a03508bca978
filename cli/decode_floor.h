// The physical floor under a flow of images: JPEG decode alone.
#pragma once

#include <span>
#include <string>

namespace millrace::cli {

struct DecodeFloor {
  double images_per_s = 0;
  double images_per_cpu_s = 0;
};

/// TurboJPEG from memory to RGB, over and over these files, with so many threads for so many seconds;
/// each thread keeps its decompressor and its output buffer. Files that are no JPEGs are left out; all
/// zeros where none is left.
DecodeFloor measure_decode_floor(std::span<const std::string> files, int threads, double seconds);

}  // namespace millrace::cli
