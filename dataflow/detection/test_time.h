// How images are prepared for detection: by evaluation, `trainer predict`, Predictor and the
// certificates of exported models alike.
#pragma once

#include <cstdint>
#include <opencv2/core/types.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/dataflow/detection/data_options.h"
#include "millrace/dataflow/detection/decode.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection/resize_shortest_edge.h"
#include "millrace/dataflow/detection/sample.h"

namespace millrace {

struct TestTime {
  std::int64_t short_side = 800, max_side = 1333;  // pixels
  ResizeStyle style = ResizeStyle::opencv;
  bool reduced_decoding = false;  // of annotated images
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

  /// A photo from its file's bytes, whole and turned as its EXIF says; if its size is annotated,
  /// only to that size. Throws DataError naming `path`. Any thread.
  Sample photo(std::string path, std::string_view bytes,
               std::optional<cv::Size> annotated = {}) const;
};

TestTime test_time(const DataOptions& data);

}  // namespace millrace
