#include "models/layers/losses.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/smooth_l1_loss.h>

namespace millrace {

at::Tensor smooth_l1_sum(const at::Tensor& input, const at::Tensor& target, double beta) {
  if (beta > 0) return at::smooth_l1_loss(input, target, at::Reduction::Sum, beta);
  return at::l1_loss(input, target, at::Reduction::Sum);  // the other's gradient is not 0 at 0
}

at::Tensor binary_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target) {
  return at::binary_cross_entropy_with_logits(logits, target, /*weight=*/{}, /*pos_weight=*/{},
                                              at::Reduction::Sum);
}

}  // namespace millrace
