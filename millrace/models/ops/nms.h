// Non-maximum suppression: on the CPU groups in parallel, with the same result for any number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Keeps the best of boxes that overlap more than `threshold` (IoU > threshold is dropped). boxes
/// (N, 4) x1 y1 x2 y2, scores (N) float. Gives the kept indices (M) int64 by falling score; equal
/// scores keep their order. `threshold` is at least 0; `offset` is added to widths and heights (1:
/// the legacy convention). Throws std::invalid_argument for shapes that do not fit.
at::Tensor nms(const at::Tensor& boxes, const at::Tensor& scores, double threshold,
               double offset = 0);

/// The same within each group: boxes of different `groups` (N) int64 never suppress each other.
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       double threshold, double offset = 0);

}  // namespace millrace
