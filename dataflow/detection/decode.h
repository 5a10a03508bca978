// The stage that decodes image files.
#pragma once

#include <string>
#include <string_view>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/image/image_head.h"

namespace millrace {

/// Returns the bytes of an image file in memory, which may be mapped from disk. Throws DataError
/// with `path` if their digest is wrong.
std::string_view checked_bytes(const EncodedImage& file, const std::string& path);

/// Reads and decodes a sample's file into an RGB image; throws DataError if its size is not the
/// annotated one. A sample with pixels is unchanged.
struct Decode {
  static constexpr std::string_view kName = "decode";
  bool strict = true;
  std::int64_t max_pixels = kMaxPixels;
  std::int64_t short_side = 0, max_side = 65535;  // pixels; see describe()

  Sample operator()(Sample sample) const;
  /// Decodes a sample from an image file's bytes.
  Sample decoded(Sample sample, std::string_view bytes) const;

  void describe(Options& o) {
    o.add("strict", strict, "a JPEG that ends too early cannot be used")
        .follows("data.strict_decoding");
    o.add("max_pixels", max_pixels, "an image of more pixels cannot be used; 0 = unlimited",
          {.min = 0, .max = 1 << 30, .unit = "pixels"})
        .follows("data.max_pixels");
    o.add("short_side", short_side,
          "that will do: a JPEG of twice its size, or more, is decoded at a half, a quarter or an "
          "eighth of its own; 0: none",
          {.min = 0, .max = 16384, .unit = "pixels"});
    o.add("max_side", max_side, "of the longer side, with short_side",
          {.min = 1, .max = 65535, .unit = "pixels"});
  }
};

/// Returns a decoder for this resize. If `reduced`, it decodes no more pixels than the resize
/// needs, except for detectron2's style, which averages all pixels itself.
Decode decode_for(const ResizeShortestEdge& resize, bool reduced);

}  // namespace millrace
