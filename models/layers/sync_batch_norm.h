// Batch norm over the batches of all ranks.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

class RankSum;

/// The tensors of a batch norm, (C) each.
struct BatchNormTensors {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;  // updated, except under NoGradGuard
};

/// COLLECTIVE. Normalises y (N, C, H, W), N may be 0, by mean and variance over all ranks, as one
/// process with all images would (Peng et al. 2018, "MegDet"); the same holds for its gradients.
/// Each rank must take part in two sums per step, one in the forward and one in the backward pass.
at::Tensor sync_batch_norm(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, RankSum& ranks);

}  // namespace millrace
