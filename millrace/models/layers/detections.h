// The best of what heads propose for an image: too small, too faint and doubled detections go.
// Shapes: D detections.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/options.h"
#include "millrace/models/layers/idle_options.h"

namespace millrace {

struct DetectionOptions {
  double score_threshold = 0.05;
  double nms = 0.5;
  std::string nms_kind = "hard";
  double sigma = 0.5;
  std::int64_t most = 100;
  double min_side = 0;

  void describe(Options& o);
  std::vector<IdleOption> idle() const;
};

/// True (height, width) of an image in the network's pixels.
using ImageSize = std::pair<double, double>;

/// What was found in one image, best first.
struct Found {
  at::Tensor boxes;   // (D, 4) network pixels
  at::Tensor scores;  // (D)
  at::Tensor labels;  // (D) int64, 0 .. classes - 1
};

/// Cuts candidate boxes to the image, drops those that are not finite or too small, suppresses
/// within each class by the options' kind of NMS (`offset` as in batched_nms) and keeps the best.
Found best_detections(const Found& candidates, const ImageSize& size, double offset,
                      const DetectionOptions& options);

}  // namespace millrace
