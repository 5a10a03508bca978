// How images are prepared for detection: by evaluation, `trainer predict` and Predictor alike.
#pragma once

#include <cstdint>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"

namespace millrace {

struct TestTime {
  std::int64_t short_side = 800, max_side = 1333;  // pixels
  ResizeStyle style = ResizeStyle::detectron2;
  bool reduced_decoding = true;
  bool strict_decoding = true;
  std::int64_t max_pixels = kMaxPixels;  // 0 = unlimited
  std::int64_t divisor = 32;             // images alone are padded to multiples of so many pixels

  /// The stages, in this order. The resize draws nothing.
  ResizeShortestEdge resize() const {
    return {.short_side = {short_side}, .max_side = max_side, .style = style};
  }
  Decode decode() const {
    auto decode = decode_for(resize(), reduced_decoding);
    decode.strict = strict_decoding;
    decode.max_pixels = max_pixels;
    return decode;
  }
  Pad pad() const { return {.divisor = divisor}; }
};

TestTime test_time(const DataOptions& data);

}  // namespace millrace
