// A convolution with a scale of its weight, fused with a sum and an activation.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"

namespace millrace {

struct Convolution {
  at::Tensor weight;  // (out, in / groups, k, k)
  at::Tensor scale;   // (out), constant, multiplies the weight; undefined = 1
  at::Tensor bias;    // (out); undefined = none
  std::int64_t stride = 1, padding = 0, groups = 1;
};

/// Convolves x (N, in, H, W) to (N, out, H', W') in channels-last memory, in compute_type()
/// (millrace/models/detector/precision.h). Keeps for the backward pass the input, and for a ReLU
/// the output (for SiLU its input); keeps no tensor if no gradient is needed. On a CPU, 3x3
/// convolutions of stride 1 use winograd.h if it fits them; oneDNN computes the others and fuses
/// the activation; the backward pass of a gradient with few nonzero pixels is cheap
/// (sparse_backward.h). On other devices bias, sum and ReLU are one kernel.
at::Tensor convolve(const at::Tensor& x, const Convolution& convolution, const After& after = {});

/// Convolves several maps (N, in, H_l, W_l), as a head shared by the levels of a pyramid does. If
/// Winograd fits all of them together, each is computed with it, and the weight and its gradient
/// are transformed once.
std::vector<at::Tensor> convolve(at::TensorList maps, const Convolution& convolution,
                                 Activation activation);

/// Applies `after` in place to `y`, whose values no backward pass may need.
at::Tensor finish(at::Tensor y, const After& after);

}  // namespace millrace
