// The cells of a feature map, for heads without anchors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

#include <cstdint>

#include "millrace/models/onnx/operations.h"

namespace millrace {

/// Returns column and row of each cell of a map, (height width, 2) float, row by row, the order of
/// `map.flatten(2)`. The cells' centres, in pixels, of a map (N, C, H, W) with that `stride` are:
///
///   (cells_of(map.size(2), map.size(3), map.device()) + 0.5) * stride
inline at::Tensor cells_of(std::int64_t height, std::int64_t width, at::Device device = at::kCPU) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto columns = at::arange(width, options).expand({height, width});
  const auto rows = at::arange(height, options).unsqueeze(1).expand({height, width});
  return at::stack({columns, rows}, 2).view({-1, 2});
}
/// Adds the nodes for a list of height and width.
inline onnx::Value cells_of(const onnx::Value& size) {
  const auto numbers = [&](std::int64_t axis) {
    return onnx::cast(onnx::range(onnx::slice(size, 0, axis, axis + 1)), onnx::Type::f32);
  };
  const auto columns = onnx::expand(numbers(1), size),
             rows = onnx::expand(onnx::unsqueeze(numbers(0), {1}), size);
  return onnx::reshape(onnx::concat({onnx::unsqueeze(columns, {2}), onnx::unsqueeze(rows, {2})}, 2),
                       {-1, 2});
}

}  // namespace millrace
