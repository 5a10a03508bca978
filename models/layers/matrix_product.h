// Products of activations and weights.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Returns x wt + bias: x (..., K), weight (N, K), bias (N) or undefined -> (..., N), in
/// compute_type() (millrace/models/detector/precision.h), with gradients. On a CPU oneDNN computes
/// all three products, in half the time of MKL, libtorch's default for fp32, on processors that are
/// not Intel's; on other devices at::linear does.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

}  // namespace millrace
