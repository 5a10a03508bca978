// 3x3 convolutions by Winograd's F(4x4, 3x3), with a quarter of the multiplications
// (docs/decisions/0036-winograd.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>
#include <vector>

namespace millrace {

// Of several maps at once, as a head shared by the levels of a pyramid has: its weight is
// transformed once for all of them.

/// Whether the two below are for a convolution of stride 1 and padding 1: float on a CPU, or bf16
/// on one that has no matrix registers, multiples of 16 channels, maps that are together large
/// enough for the weight. Does not depend on the number of images.
bool winograd_fits(at::TensorList maps, const at::Tensor& weight);

/// maps (N, C, H_l, W_l), weight (K, C, 3, 3), bias (K) or undefined -> (N, K, H_l, W_l) in
/// channels-last memory and the type of the maps, with `add` (none, or one for each map), then a
/// ReLU; computed in float. A batch gives the bytes that its images give alone, several maps those
/// that each gives alone, for any number of threads.
std::vector<at::Tensor> winograd(at::TensorList maps, const at::Tensor& weight,
                                 const at::Tensor& bias, at::TensorList add, bool relu);

/// From the outputs' gradients (N, K, H_l, W_l), before ReLU and sum, those of the maps, the weight
/// and the bias that are `wanted`; the others are undefined, or no maps. Those of maps have their
/// type, the others are float. The same bytes for any number of threads.
std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor> winograd_backward(
    at::TensorList gradients, at::TensorList maps, const at::Tensor& weight,
    std::array<bool, 3> wanted);

}  // namespace millrace
