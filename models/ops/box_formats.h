// Conversions between the two formats of boxes: x1 y1 x2 y2, as used everywhere here, and centre x,
// centre y, width, height, as many heads without anchors predict, in any unit.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Converts boxes (..., 4) from centre and sides to x1 y1 x2 y2.
at::Tensor to_corners(const at::Tensor& boxes);
onnx::Value to_corners(const onnx::Value& boxes);

/// Converts boxes (..., 4) from x1 y1 x2 y2 to centre and sides.
at::Tensor to_centers(const at::Tensor& corners);

}  // namespace millrace
