// The backward pass of a convolution whose output gradient is zero nearly everywhere, such as that
// of an RPN, whose loss samples 256 of 200,000 anchors: matrix products over the nonzero pixels
// only.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "millrace/models/ops/cpu/touched_pixels.h"

namespace millrace {

/// Computes, from the gradients of the outputs (N, K, H_l', W_l') and their `touched` pixels, the
/// `wanted` gradients of the maps (N, C, H_l, W_l), the weight (K, C, k, k) and the bias. Unwanted
/// tensors are undefined, unwanted maps empty. All tensors are on a CPU and of one type, maps
/// channels last; sums are float. The convolution has one group. The bytes are the same for any
/// number of threads.
std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor> sparse_backward(
    at::TensorList gradients, const std::vector<TouchedPixels>& touched, at::TensorList maps,
    const at::Tensor& weight, std::int64_t stride, std::int64_t padding,
    std::array<bool, 3> wanted);

}  // namespace millrace
