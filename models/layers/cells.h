// The cells of a feature map, for heads without anchors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Returns column and row of each cell of a map, (height width, 2) float, row by row, the order of
/// `map.flatten(2)`. The cells' centres, in pixels, of a map (N, C, H, W) with that `stride` are:
///
///   (cells_of(map.size(2), map.size(3), map.device()) + 0.5) * stride
at::Tensor cells_of(std::int64_t height, std::int64_t width, at::Device device = at::kCPU);
/// Adds the nodes for a list of height and width.
onnx::Value cells_of(const onnx::Value& size);

}  // namespace millrace
