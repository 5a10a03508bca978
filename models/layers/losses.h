// Losses as sums: the caller chooses the divisor.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "millrace/models/ops/boxes.h"

namespace millrace {

/// Returns the sum of smooth L1: 0.5 x^2 / beta below beta, |x| - beta / 2 above; beta 0 is plain
/// L1.
at::Tensor smooth_l1_sum(const at::Tensor& input, const at::Tensor& target, double beta);

/// Returns the sum of binary cross-entropy of logits against targets in 0 .. 1.
at::Tensor binary_cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target);

/// Returns the sum of 1 - generalised IoU (Rezatofighi et al. 2019) of boxes (F, 4) and targets (F,
/// 4); 1e-7 keeps quotients finite, as in torchvision. `weights` (F) multiply the boxes' losses;
/// undefined = all 1.
at::Tensor giou_loss_sum(const at::Tensor& boxes, const at::Tensor& targets,
                         const at::Tensor& weights = {});

/// Smooth L1 of deltas, or the generalised IoU loss of boxes.
enum class BoxLossType { smooth_l1, giou };
inline std::vector<std::string> value_names(BoxLossType) { return {"smooth_l1", "giou"}; }

/// The box regression loss, as configured.
struct BoxLoss {
  BoxLossType bbox_reg_loss_type = BoxLossType::smooth_l1;
  double smooth_l1_beta = 0;  // smooth L1 is linear from here; 0 = L1

  /// Returns the sum of losses of deltas (F, 4), predicted for `references` (F, 4) with the targets
  /// `boxes` (F, 4): smooth L1 of the deltas, or the generalised IoU loss of the decoded boxes.
  at::Tensor sum(const BoxCoder& coder, const at::Tensor& references, const at::Tensor& deltas,
                 const at::Tensor& boxes) const;
};

}  // namespace millrace
