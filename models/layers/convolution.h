// A convolution with a scale of its weight, and with a sum and an activation in the same pass over
// the output.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "millrace/models/layers/layers.h"

namespace millrace {

struct Convolution {
  at::Tensor weight;  // (out, in / groups, k, k)
  at::Tensor scale;   // (out), fixed, multiplies the weight; undefined: 1
  at::Tensor bias;    // (out), undefined where there is none
  std::int64_t stride = 1, padding = 0, groups = 1;
};

/// x (N, in, H, W) -> (N, out, H', W') in channels-last memory, in compute_type()
/// (millrace/models/detector/precision.h). Keeps for the backward pass the input and, for a ReLU,
/// the output (for SiLU what that takes); nothing if nothing needs a gradient. On a CPU, 3x3
/// convolutions of stride 1 are those of winograd.h where they fit it; oneDNN computes the others
/// and fuses the activation; a gradient with few pixels that are not zero takes little
/// (sparse_backward.h). On other devices bias, sum and ReLU are one kernel.
at::Tensor convolve(const at::Tensor& x, const Convolution& convolution, const After& after = {});

/// The same convolution of several maps (N, in, H_l, W_l), as a head shared by the levels of a
/// pyramid has: where Winograd's sums fit all of them together, each is computed by them, with the
/// weight and its gradient transformed once.
std::vector<at::Tensor> convolve(at::TensorList maps, const Convolution& convolution,
                                 Activation activation);

/// The same epilogue in place on `y`, for outputs that no backward pass needs.
at::Tensor finish(at::Tensor y, const After& after);

}  // namespace millrace
