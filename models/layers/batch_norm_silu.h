// Batch norm and the SiLU after it as one operator.
#pragma once

#include <ATen/core/Tensor.h>

#include "millrace/models/layers/sync_batch_norm.h"

namespace millrace {

/// silu(batch norm of y) by the batch's statistics; y (N, C, H, W). Keeps y alone for the backward
/// pass, where one after the other keep what the SiLU takes as well: a third of what a network of
/// such layers keeps. `follows`: running statistics take the batch in by `momentum`.
at::Tensor batch_norm_silu(const at::Tensor& y, const BatchNormTensors& norm, double momentum,
                           double epsilon, bool follows);

}  // namespace millrace
