// Losses as sums: whoever calls decides what to divide by.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Sum of smooth L1: 0.5 x^2 / beta below beta, |x| - beta / 2 above; beta 0 is plain L1.
at::Tensor smooth_l1_sum(const at::Tensor& input, const at::Tensor& target, double beta);

/// Sum of binary cross-entropy of logits against targets of 0 .. 1.
at::Tensor binary_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target);

}  // namespace millrace
