// The stage that makes pixels of image files.
#pragma once

#include <string_view>

#include "millrace/base/options.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

/// Reads and decodes a sample's file into an RGB image, of the annotated size if there is one. A
/// sample that has its pixels stays as it is.
struct Decode {
  static constexpr std::string_view kName = "decode";
  bool strict = true;
  std::int64_t short_side = 0, max_side = 65535;  // pixels; see describe()

  Sample operator()(Sample sample) const;
  /// The same of an image file's bytes.
  Sample decoded(Sample sample, std::string_view bytes) const;

  void describe(Options& o) {
    o.add("strict", strict, "a JPEG with damaged or missing data cannot be used");
    o.add("short_side", short_side,
          "that will do: a JPEG of twice its size, or more, is decoded at a half, a quarter or an "
          "eighth of its own; 0: none",
          {.min = 0, .max = 16384, .unit = "pixels"});
    o.add("max_side", max_side, "of the longer side, with short_side",
          {.min = 1, .max = 65535, .unit = "pixels"});
  }
};

/// A decoder that, where `reduced`, makes no more pixels than the resize after it leaves; all for
/// detectron2's style, which averages them itself.
Decode decode_for(const ResizeShortestEdge& resize, bool reduced);

}  // namespace millrace
