// Computes region proposals from the outputs of an RPN, for all images and levels of a batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "millrace/models/ops/boxes.h"

namespace millrace {

struct ProposalOptions {
  std::int64_t before = 1000;  // boxes per level that are decoded: those with the highest logits
  std::int64_t after = 1000;   // maximum boxes per image over all levels
  double threshold = 0.7;      // NMS threshold (IoU) within a level
  double min_side = 0;         // minimum width and height in pixels; 0 = positive area
  /// Ranks boxes by the sigmoid of their logits, so that logits which round to the same value are
  /// tied.
  bool by_probability = false;
  BoxCoder coder;
};

struct Proposals {
  at::Tensor boxes;   // (N, K, 4) float, best first; padded with zeros
  at::Tensor counts;  // (N) int64: number of boxes of each image

  /// Returns the boxes of each image, (P, 4). Synchronizes with the device.
  std::vector<at::Tensor> each() const;
};

/// Takes logits (N, T), deltas (N, T, 4) and anchors (T, 4), level after level; `level_counts` (L):
/// number of anchors of each level; `sizes` (N): true (height, width) of the images. Returns the
/// boxes of each image, best first. For each level, the best logits are decoded and clipped to the
/// image; boxes that are small or not finite are removed; then NMS. The best boxes of all levels
/// are kept. Ties go to the lower level, then the lower index, for any number of threads. Not
/// differentiable. Throws std::invalid_argument for shapes that do not fit.
Proposals proposals(const at::Tensor& logits, const at::Tensor& deltas, const at::Tensor& anchors,
                    const std::vector<std::int64_t>& level_counts,
                    const std::vector<std::pair<double, double>>& sizes,
                    const ProposalOptions& options);

}  // namespace millrace
