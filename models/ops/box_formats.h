// Conversions between the two formats of boxes: x1 y1 x2 y2, as used everywhere here, and centre x,
// centre y, width, height, as many heads without anchors predict, in any unit.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include "millrace/models/onnx/operations.h"

namespace millrace {

/// Converts boxes (..., 4) from centre and sides to x1 y1 x2 y2.
inline at::Tensor to_corners(const at::Tensor& boxes) {
  const auto half = boxes.narrow(-1, 2, 2) * 0.5;
  // A shared centre would change the order in which gradients are summed, and so their rounding.
  return at::cat({boxes.narrow(-1, 0, 2) - half, boxes.narrow(-1, 0, 2) + half}, -1);
}
inline onnx::Value to_corners(const onnx::Value& boxes) {
  const auto centre = onnx::slice(boxes, -1, 0, 2), half = onnx::slice(boxes, -1, 2, 4) * 0.5;
  return onnx::concat({centre - half, centre + half}, -1);
}

/// Converts boxes (..., 4) from x1 y1 x2 y2 to centre and sides.
inline at::Tensor to_centers(const at::Tensor& corners) {
  const auto first = corners.narrow(-1, 0, 2), last = corners.narrow(-1, 2, 2);
  return at::cat({(first + last) * 0.5, last - first}, -1);
}

}  // namespace millrace
