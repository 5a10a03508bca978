// Non-maximum suppression. The CPU processes groups in parallel, with the same result for any
// number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Drops each box that overlaps a better one of its group with an IoU > `threshold`, which is at
/// least 0. boxes (N, 4) x1 y1 x2 y2, scores (N) float, groups (N) int64. Returns the kept indices
/// (M) int64 by descending score; equal scores keep their order. `offset` is added to widths and
/// heights (1: the legacy convention). Throws std::invalid_argument for shapes that do not fit.
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       double threshold, double offset = 0);

/// Adds the NMS of boxes (N, B, 4) with scores (N, C, B); the C groups are suppressed separately. A
/// score that is not above 0 marks an absent box; at most `most` boxes of a group are kept. Returns
/// (S, 3): image, group, box.
onnx::Value batched_nms(const onnx::Value& boxes, const onnx::Value& scores, double threshold,
                        double offset, std::int64_t most);

}  // namespace millrace
