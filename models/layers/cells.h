// The cells of a feature map, which heads without anchors say something of.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Column and row of each cell of a map, (height width, 2) float, row by row: the order of
/// `map.flatten(2)`. Centres in pixels of a map (N, C, H, W) whose cells have `stride` pixels:
///
///   (cells_of(map.size(2), map.size(3), map.device()) + 0.5) * stride
at::Tensor cells_of(std::int64_t height, std::int64_t width, at::Device device = at::kCPU);
/// The same in a graph, for a list of height and width.
onnx::Value cells_of(const onnx::Value& size);

}  // namespace millrace
