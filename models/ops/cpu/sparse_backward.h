// The backward pass of a convolution whose output's gradient is zero nearly everywhere, as that of
// an RPN is, whose loss takes 256 of 200,000 anchors: products of the pixels that are not alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "millrace/models/ops/cpu/touched_pixels.h"

namespace millrace {

/// From the gradients of outputs (N, K, H_l', W_l') and their pixels that are `touched`, those of
/// the maps (N, C, H_l, W_l), of the weight (K, C, k, k) and of the bias that are `wanted`; the
/// others are undefined, or no maps. All lie on a CPU, maps channels last, and have one type; sums
/// are float. The convolution has one group. The same bytes for any number of threads.
std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor> sparse_backward(
    at::TensorList gradients, const std::vector<TouchedPixels>& touched, at::TensorList maps,
    const at::Tensor& weight, std::int64_t stride, std::int64_t padding,
    std::array<bool, 3> wanted);

}  // namespace millrace
