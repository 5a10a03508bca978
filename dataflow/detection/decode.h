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
    o.add("strict", strict, "treat a truncated JPEG as unusable").follows("data.strict_decoding");
    o.add("max_pixels", max_pixels,
          "maximum pixels of an image; larger images are unusable; 0 = unlimited",
          {.min = 0, .max = 1 << 30, .unit = "pixels"})
        .follows("data.max_pixels");
    o.add("short_side", short_side,
          "shorter side that suffices: JPEGs of at least twice this size are decoded at 1/2, 1/4 "
          "or 1/8 of their size; 0 = always full size",
          {.min = 0, .max = 16384, .unit = "pixels"});
    o.add("max_side", max_side, "maximum length of the longer side, for short_side",
          {.min = 1, .max = 65535, .unit = "pixels"});
  }
};

/// Returns a decoder for this resize. If `reduced`, it decodes no more pixels than the resize
/// needs, except for detectron2's style, which averages all pixels itself.
Decode decode_for(const ResizeShortestEdge& resize, bool reduced);

}  // namespace millrace
