// How images are prepared for detection: by evaluation, `trainer predict`, Predictor and the
// certificates of exported models alike.
#pragma once

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

/// The stages by which [data] prepares images, in this order. The resize draws nothing.
struct TestTime {
  explicit TestTime(const DataOptions& data = {});

  Decode decode;
  ResizeShortestEdge resize;
  Pad pad;

  /// A photo from its file's bytes, whole and turned by its EXIF orientation; if its size is
  /// annotated, only to that size. Throws DataError naming `path`. Any thread.
  Sample photo(std::string path, std::string_view bytes,
               std::optional<cv::Size> annotated = {}) const;

  /// A decoded image, resized.
  Sample resized(Sample sample) const;
};

}  // namespace millrace
