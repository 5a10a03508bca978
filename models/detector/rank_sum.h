// All-reduces over the ranks of a training, for layers that need them.
#pragma once

#include <ATen/core/Tensor.h>

namespace millrace {

/// Sums over the ranks, and over the micro-batches that a rank computes concurrently, during a
/// step's losses and gradients: the statistics of batch norm. Used by the threads that compute
/// these.
class RankSum {
 public:
  virtual ~RankSum() = default;

  /// COLLECTIVE. Replaces `values` (contiguous, fp32 or double) by their sum over all ranks, the
  /// same bits on each. Every rank makes the same calls in the same order. Throws Error.
  virtual void operator()(const at::Tensor& values) = 0;

  /// Returns true if the caller must update the running statistics after a sum. Exactly one of a
  /// process's micro-batches does, since they share the statistics.
  virtual bool updates_statistics() { return true; }
};

}  // namespace millrace
