// 3x3 convolutions by Winograd's F(4x4, 3x3), with a quarter of the multiplications
// (docs/decisions/0036-winograd.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>

#include "millrace/models/layers/layers.h"

namespace millrace {

/// Whether the two below are for a convolution of stride 1 and padding 1: float on a CPU, or bf16
/// on one that has no matrix registers, multiples of 16 channels, maps that are large enough for
/// the weight. Does not depend on the number of images.
bool winograd_fits(const at::Tensor& x, const at::Tensor& weight);

/// x (N, C, H, W), weight (K, C, 3, 3), bias (K) or undefined -> (N, K, H, W) in channels-last
/// memory and the type of x, with the sum and the activation of `after`; computed in float. A batch
/// gives the bytes that its images give alone, for any number of threads.
at::Tensor winograd(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                    const After& after);

/// From the output's gradient (N, K, H, W), before `after`, those of x, weight and bias that are
/// `wanted`; the others are undefined. That of x has its type, the others are float. The same bytes
/// for any number of threads.
std::tuple<at::Tensor, at::Tensor, at::Tensor> winograd_backward(const at::Tensor& gradient,
                                                                 const at::Tensor& x,
                                                                 const at::Tensor& weight,
                                                                 std::array<bool, 3> wanted);

}  // namespace millrace
