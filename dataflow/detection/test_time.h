// Prepares images for detection in the same way for evaluation, `trainer predict`, Predictor and
// the certificates of exported models.
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

/// The stages by which [data] prepares images, in this order. The resize draws no random numbers.
struct TestTime {
  explicit TestTime(const DataOptions& data = {});

  Decode decode;
  ResizeShortestEdge resize;
  Pad pad;

  /// Decodes a photo from its file's bytes at full size, rotated by its EXIF orientation; with
  /// `annotated`, rotated only if that gives the annotated size. Throws DataError with `path`.
  /// Thread-safe.
  Sample photo(std::string path, std::string_view bytes,
               std::optional<cv::Size> annotated = {}) const;

  /// Returns a decoded image, resized.
  Sample resized(Sample sample) const;
};

}  // namespace millrace
