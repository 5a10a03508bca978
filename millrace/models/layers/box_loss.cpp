#include "millrace/models/layers/box_loss.h"

#include "millrace/models/layers/losses.h"

namespace millrace {

at::Tensor BoxLoss::sum(const BoxCoder& coder, const at::Tensor& references,
                        const at::Tensor& deltas, const at::Tensor& boxes) const {
  if (kind == "giou") return giou_loss_sum(coder.decode(references, deltas), boxes);
  return smooth_l1_sum(deltas, coder.encode(references, boxes), beta);
}

}  // namespace millrace
