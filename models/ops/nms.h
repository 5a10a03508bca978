// Non-maximum suppression: on the CPU groups in parallel, with the same result for any number of
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Drops each box that a better one of its group overlaps with an IoU > `threshold`, at least 0.
/// boxes (N, 4) x1 y1 x2 y2, scores (N) float, groups (N) int64. Gives the kept indices (M) int64
/// by falling score; equal scores keep their order. `offset` is added to widths and heights (1: the
/// legacy convention). Throws std::invalid_argument for shapes that do not fit.
at::Tensor batched_nms(const at::Tensor& boxes, const at::Tensor& scores, const at::Tensor& groups,
                       double threshold, double offset = 0);

/// The same in a graph: boxes (N, B, 4) of scores (N, C, B), whose C groups suppress apart. Where a
/// score is not above 0 there is no box; at most `most` of a group are kept. Gives (S, 3): image,
/// group, box.
onnx::Value batched_nms(const onnx::Value& boxes, const onnx::Value& scores, double threshold,
                        double offset, std::int64_t most);

}  // namespace millrace
