// Batch norms that libtorch lacks: over the batches of all ranks, and with a following SiLU as one
// operator.
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

/// Returns silu(batch norm of y) with the batch's statistics; y (N, C, H, W). Keeps only y for the
/// backward pass, while separate operators also keep the SiLU's input; this saves a third of the
/// activations of a network of such layers. `follows`: running statistics are updated with
/// `momentum`.
at::Tensor batch_norm_silu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, bool follows);

}  // namespace millrace
