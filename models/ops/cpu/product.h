// Matrix products by oneDNN, which takes half the time of MKL, libtorch's default for fp32, on
// processors that are not Intel's.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Returns true if oneDNN multiplies `x`, on a CPU, by a matrix in `type`.
bool onednn_takes(const at::Tensor& x, at::ScalarType type);

/// Returns the product without a gradient: x (M, K), weight (N, K), of one type, bias (N) or
/// undefined -> (M, N). Uses at::linear if oneDNN does not support it.
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias = {});

}  // namespace millrace
