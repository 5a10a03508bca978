// 3x3 convolutions by Winograd's F(4x4, 3x3), with a quarter of the multiplications
// (docs/decisions/0012-cpu-convolutions.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <tuple>
#include <vector>

namespace millrace {

// The functions take several maps, as a head shared by the levels of a pyramid does, and transform
// the weight once for all of them.

/// Returns true if the two functions below apply to a convolution of stride 1 and padding 1: float
/// on a CPU, or bf16 on a CPU without matrix registers, channels in multiples of 16, and maps that
/// are together large enough to pay for the weight's transform. The result does not depend on the
/// number of images.
bool winograd_fits(at::TensorList maps, const at::Tensor& weight);

/// Convolves maps (N, C, H_l, W_l) with weight (K, C, 3, 3) and bias (K) or undefined, adds `add`
/// (empty, or one for each map), then applies ReLU if `relu`. Returns (N, K, H_l, W_l) in
/// channels-last memory and the type of the maps; computed in float. The bytes of an image do not
/// depend on other images or maps of the call or on the number of threads.
std::vector<at::Tensor> winograd(at::TensorList maps, const at::Tensor& weight,
                                 const at::Tensor& bias, at::TensorList add, bool relu);

/// Computes, from the gradients of the outputs (N, K, H_l, W_l) before ReLU and sum, the `wanted`
/// gradients of the maps, the weight and the bias. Unwanted tensors are undefined, unwanted maps
/// empty. Gradients of maps have the maps' type, the others are float. The bytes are the same for
/// any number of threads.
std::tuple<std::vector<at::Tensor>, at::Tensor, at::Tensor> winograd_backward(
    at::TensorList gradients, at::TensorList maps, const at::Tensor& weight,
    std::array<bool, 3> wanted);

}  // namespace millrace
