// Focal loss (Lin et al. 2017) of many anchors and classes, without a tensor of targets or losses:
// one forward and one backward pass, with the same bits for any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace millrace {

struct FocalOptions {
  double alpha = 0.25;  // weight of positives; negatives have 1 - alpha
  double gamma = 2;     // focusing parameter: 0 is the cross entropy
};

/// Values of `classes` besides 0 .. K - 1.
constexpr std::int64_t kBackground = -1, kIgnored = -2;

/// Returns the sum over anchors and classes of alpha_t (1 - p_t)^gamma log(1 / p_t), where p is the
/// sigmoid of `logits` (T, K), float or double. `classes` (T) int64 has each anchor's class,
/// kBackground or kIgnored. Differentiable in `logits`.
at::Tensor focal_loss_sum(const at::Tensor& logits, const at::Tensor& classes,
                          const FocalOptions& options);

}  // namespace millrace
