// Batch norm over the batches of all ranks.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

class RankSum;

/// (C) each.
struct BatchNormTensors {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;  // updated, except under NoGradGuard
};

/// y (N, C, H, W), N may be 0, normalised by the mean and variance over all ranks, as one process
/// with all images would (Peng et al. 2018, "MegDet"); so are its gradients. Two sums over the
/// ranks per step, one in the forward and one in the backward pass: every rank must take part in
/// both.
at::Tensor sync_batch_norm(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, RankSum& ranks);

}  // namespace millrace
