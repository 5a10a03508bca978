#include "millrace/models/layers/cells.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/stack.h>

#include "millrace/models/onnx/operations.h"

namespace millrace {

at::Tensor cells_of(std::int64_t height, std::int64_t width, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto columns = at::arange(width, options).expand({height, width});
  const auto rows = at::arange(height, options).unsqueeze(1).expand({height, width});
  return at::stack({columns, rows}, 2).view({-1, 2});
}

onnx::Value cells_of(const onnx::Value& size) {
  const auto numbers = [&](std::int64_t axis) {
    return onnx::cast(onnx::range(onnx::slice(size, 0, axis, axis + 1)), onnx::Type::f32);
  };
  const auto columns = onnx::expand(numbers(1), size),
             rows = onnx::expand(onnx::unsqueeze(numbers(0), {1}), size);
  return onnx::reshape(onnx::concat({onnx::unsqueeze(columns, {2}), onnx::unsqueeze(rows, {2})}, 2),
                       {-1, 2});
}

}  // namespace millrace
