// Batch norm over the batches of all ranks.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

class RankSum;

/// (C) each.
struct BatchNormTensors {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;  // moved, unless nothing asks for gradients
};

/// y (N, C, H, W), also of no image, normalised by the mean and variance of what all ranks give
/// together, as if one process had it all (Peng et al. 2018, "MegDet"); so are its gradients. Two
/// sums over the ranks a step, one in the forward and one in the backward pass: every rank comes to
/// both.
at::Tensor sync_batch_norm(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, RankSum& ranks);

}  // namespace millrace
