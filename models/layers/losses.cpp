#include "millrace/models/layers/losses.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/smooth_l1_loss.h>

namespace millrace {

at::Tensor smooth_l1_sum(const at::Tensor& input, const at::Tensor& target, double beta) {
  if (beta > 0) return at::smooth_l1_loss(input, target, at::Reduction::Sum, beta);
  return at::l1_loss(input, target, at::Reduction::Sum);  // its gradient at 0 is 0
}

at::Tensor binary_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target) {
  return at::binary_cross_entropy_with_logits(logits, target, /*weight=*/{}, /*pos_weight=*/{},
                                              at::Reduction::Sum);
}

at::Tensor giou_loss_sum(const at::Tensor& boxes, const at::Tensor& targets,
                         const at::Tensor& weights) {
  constexpr double kEpsilon = 1e-7;
  const auto a = boxes.unbind(1), b = targets.unbind(1);
  const auto common = (at::minimum(a[2], b[2]) - at::maximum(a[0], b[0])).clamp_min(0) *
                      (at::minimum(a[3], b[3]) - at::maximum(a[1], b[1])).clamp_min(0);
  const auto both = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common;
  const auto hull = (at::maximum(a[2], b[2]) - at::minimum(a[0], b[0])) *
                    (at::maximum(a[3], b[3]) - at::minimum(a[1], b[1]));
  const auto loss = 1 - common / (both + kEpsilon) + (hull - both) / (hull + kEpsilon);  // (F)
  return weights.defined() ? (loss * weights).sum() : loss.sum();
}

at::Tensor BoxLoss::sum(const BoxCoder& coder, const at::Tensor& references,
                        const at::Tensor& deltas, const at::Tensor& boxes) const {
  if (bbox_reg_loss_type == BoxLossType::giou)
    return giou_loss_sum(coder.decode(references, deltas), boxes);
  return smooth_l1_sum(deltas, coder.encode(references, boxes), smooth_l1_beta);
}

}  // namespace millrace
