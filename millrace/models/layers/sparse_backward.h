// The backward pass of a convolution whose output's gradient is zero nearly everywhere, as that of
// an RPN is, whose loss takes 256 of 200,000 anchors: products of the pixels that are not alone.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

#include "millrace/models/layers/convolution.h"
#include "millrace/models/layers/touched_pixels.h"

namespace millrace {

/// From the output's gradient (N, K, H', W') and its pixels that are `touched`, those of x (N, C,
/// H, W), of the weight (K, C, k, k) and of the bias that are `wanted`; the others are undefined.
/// All lie on a CPU, maps channels last, and have one type; sums are float. Of the convolution,
/// stride and padding are read; it has one group. The same bytes for any number of threads.
std::tuple<at::Tensor, at::Tensor, at::Tensor> sparse_backward(
    const at::Tensor& gradient, const TouchedPixels& touched, const at::Tensor& x,
    const at::Tensor& weight, const Convolution& convolution, std::array<bool, 3> wanted);

}  // namespace millrace
