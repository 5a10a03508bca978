// Region proposals from the outputs of an RPN, for all images and levels of a batch at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/models/ops/boxes.h"

namespace millrace {

struct ProposalOptions {
  std::int64_t before = 1000;  // boxes per level that are decoded: those of the highest logits
  std::int64_t after = 1000;   // boxes per image that are kept, over all levels
  double threshold = 0.7;      // IoU with a better box of its level above which a box is dropped
  double min_side = 0;  // pixels: boxes with a shorter side are dropped; 0: those without area
  /// Boxes are ranked by the sigmoid of their logits: logits that round to the same value are tied.
  bool by_probability = false;
  BoxCoder coder;
};

struct Proposals {
  at::Tensor boxes;   // (N, K, 4) float, best first; zeros after the last of an image
  at::Tensor counts;  // (N) int64: how many each image has

  /// Those of each image, (P, 4). The host waits for the device.
  std::vector<at::Tensor> each() const;
};

/// logits (N, T), deltas (N, T, 4) and anchors (T, 4), level after level; `level_counts` (L): how
/// many each level has; `sizes` (N): true (height, width) of the images. Gives the boxes of each
/// image, (P, 4) float, best first. Per level: the best logits, decoded, clipped to the image,
/// without small boxes and those that are not finite, NMS; then the best of all levels. Ties go to
/// the lower level, then the lower index, for any number of threads. Not differentiable. Throws
/// std::invalid_argument for shapes that do not fit.
Proposals proposals(const at::Tensor& logits, const at::Tensor& deltas, const at::Tensor& anchors,
                    const std::vector<std::int64_t>& level_counts,
                    const std::vector<std::pair<double, double>>& sizes,
                    const ProposalOptions& options);

}  // namespace millrace
