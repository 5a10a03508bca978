// The two ways to write a box. Everything here has x1 y1 x2 y2; heads without anchors often say
// centre x, centre y, width, height, in any unit.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/onnx/graph.h"

namespace millrace {

/// Boxes (..., 4) by centre and sides as x1 y1 x2 y2.
at::Tensor corners_of(const at::Tensor& boxes);
onnx::Value corners_of(const onnx::Value& boxes);

/// Boxes (..., 4) x1 y1 x2 y2 by centre and sides.
at::Tensor centers_of(const at::Tensor& corners);

}  // namespace millrace
