// What a detector may know of the other ranks of a step: sums over them.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/cluster/gradient_sync.h"

namespace millrace {

/// Sums tensors over the ranks of a step while its losses or gradients are worked out: statistics
/// of batch norm. For the thread that does this.
class RankSum {
 public:
  RankSum(const Cluster& cluster, c10::DeviceType device) : cluster_(cluster), device_(device) {}

  /// Replaces `values` (contiguous, fp32 or double) by their sum over all ranks, the same bits on
  /// each. Every rank comes to it as often and in the same order, also with nothing to add. Throws
  /// Error.
  void operator()(const at::Tensor& values);

 private:
  const Cluster& cluster_;
  c10::DeviceType device_;
  std::unique_ptr<GradientSync> sync_;  // from the first sum on
};

}  // namespace millrace
