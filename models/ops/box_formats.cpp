#include "millrace/models/ops/box_formats.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include "millrace/models/onnx/operations.h"

namespace millrace {
namespace {

at::Tensor first(const at::Tensor& boxes) { return boxes.narrow(-1, 0, 2); }
at::Tensor last(const at::Tensor& boxes) { return boxes.narrow(-1, 2, 2); }

}  // namespace

at::Tensor to_corners(const at::Tensor& boxes) {
  const auto half = last(boxes) * 0.5;
  return at::cat({first(boxes) - half, first(boxes) + half}, -1);
}

onnx::Value to_corners(const onnx::Value& boxes) {
  const auto centre = onnx::slice(boxes, -1, 0, 2), half = onnx::slice(boxes, -1, 2, 4) * 0.5;
  return onnx::concat({centre - half, centre + half}, -1);
}

at::Tensor to_centers(const at::Tensor& corners) {
  return at::cat({(first(corners) + last(corners)) * 0.5, last(corners) - first(corners)}, -1);
}

}  // namespace millrace
