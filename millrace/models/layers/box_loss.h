// The box regression loss, as configured.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "millrace/models/ops/boxes.h"

namespace millrace {

struct BoxLoss {
  std::string kind = "smooth_l1";  // or giou
  double beta = 0;                 // where smooth L1 turns linear; 0 is L1

  /// Sum over deltas (F, 4) predicted for `references` (F, 4) that should be `boxes` (F, 4): smooth
  /// L1 of the deltas, or the generalised IoU loss of the boxes that they give.
  at::Tensor sum(const BoxCoder& coder, const at::Tensor& references, const at::Tensor& deltas,
                 const at::Tensor& boxes) const;
};

}  // namespace millrace
