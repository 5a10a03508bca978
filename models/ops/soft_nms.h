// Soft non-maximum suppression (Bodla et al. 2017) on the CPU: lowers the scores of overlapping
// boxes instead of dropping them.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

struct SoftNmsOptions {
  /// Multiplies scores by exp(-IoU^2 / sigma); false = by 1 - IoU if IoU > threshold.
  bool gaussian = true;
  double sigma = 0.5;
  double threshold = 0.5;
  double score_threshold = 0;  // boxes with this score or less are dropped
  double offset = 0;           // added to widths and heights (1: the legacy convention)
};

struct SoftNmsResult {
  at::Tensor kept;    // (M) int64, best first
  at::Tensor scores;  // (M) float: the lowered scores
};

/// Within each of `groups` (N) int64, the best box lowers the scores of the boxes that overlap it,
/// then the best of the rest does, and so on. boxes (N, 4) x1 y1 x2 y2, scores (N) float. Of equal
/// scores the first is better; the result is the same for any number of threads.
SoftNmsResult soft_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       const SoftNmsOptions& options);

}  // namespace millrace
