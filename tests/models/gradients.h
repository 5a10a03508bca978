// Gradients in double against differences.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>

#include <functional>

#include "tests/support/tensors.h"

namespace millrace::testing {

/// Expects the gradient of the scalar `function` at `point` (double) to be what central differences
/// say.
inline void expect_gradient(const std::function<at::Tensor(const at::Tensor&)>& function,
                            const at::Tensor& point, double step = 1e-5, double tolerance = 1e-7) {
  const auto input = point.clone().requires_grad_();
  function(input).backward();
  const at::NoGradGuard no_grad;
  auto numeric = at::empty_like(point);
  auto moved = point.clone().contiguous();
  auto* value = moved.mutable_data_ptr<double>();
  auto* out = numeric.mutable_data_ptr<double>();
  for (std::int64_t i = 0; i < moved.numel(); ++i) {
    const double at = value[i];
    value[i] = at + step;
    const auto above = function(moved).item<double>();
    value[i] = at - step;
    const auto below = function(moved).item<double>();
    value[i] = at;
    out[i] = (above - below) / (2 * step);
  }
  EXPECT_TRUE(close(input.grad(), numeric, tolerance));
}

}  // namespace millrace::testing
