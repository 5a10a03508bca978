// Matrix products by oneDNN, in half the time of MKL, which libtorch takes for fp32, on processors
// that are not Intel's.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Whether oneDNN multiplies `x`, on a CPU, by a matrix in `type`.
bool onednn_takes(const at::Tensor& x, at::ScalarType type);

/// The product without a gradient: x (M, K), weight (N, K), of one type, bias (N) or undefined ->
/// (M, N). By at::linear if oneDNN does not take it.
at::Tensor times_transposed(const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias = {});

}  // namespace millrace
