// Batch norm and a following SiLU as one operator.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/layers/sync_batch_norm.h"

namespace millrace {

/// Returns silu(batch norm of y) with the batch's statistics; y (N, C, H, W). Keeps only y for the
/// backward pass, while separate operators also keep the SiLU's input; this saves a third of the
/// activations of a network of such layers. `follows`: running statistics are updated with
/// `momentum`.
at::Tensor batch_norm_silu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, bool follows);

}  // namespace millrace
