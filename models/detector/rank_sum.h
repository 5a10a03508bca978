// Sums over the ranks of a training, for layers that need them.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Sums over the ranks, and over the micro-batches that a rank computes side by side, during a
/// step's losses and gradients: statistics of batch norm. For the thread that computes these.
class RankSum {
 public:
  virtual ~RankSum() = default;

  /// Replaces `values` (contiguous, fp32 or double) by their sum over all ranks, the same bits on
  /// each. Every rank makes the same calls in the same order. Throws Error.
  virtual void operator()(const at::Tensor& values) = 0;

  /// Whether the caller is to move the running statistics after a sum: of the micro-batches of one
  /// process, which have the same, one does.
  virtual bool moves_statistics() { return true; }
};

}  // namespace millrace
