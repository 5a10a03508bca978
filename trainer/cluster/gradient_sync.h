// Sums of large tensors over the ranks of a training.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "millrace/base/registry.h"
#include "millrace/models/detector/rank_sum.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Sums tensors over all ranks in the background. One implementation per kind of device.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Begins to replace the values (contiguous, on the device, float or half precision) by their sum
  /// over all ranks. Every rank gives the same tensors in the same order. `what` names them in
  /// messages; a literal.
  virtual void begin_sum(const at::Tensor& values, const char* what) = 0;

  /// Waits for all sums; on a GPU, its current stream does. The same ranks sum the same values to
  /// the same bits every time.
  virtual void wait() = 0;
};

/// In which order the values of several ranks are added, the same every time.
enum class SumOrder {
  fastest,  // that of the device's library
  tree,     // tree_sum by rank, as train.micro_batch needs it
};

/// Throws Error if the device is not available. The cluster outlives what is made.
using GradientSyncFactory = std::function<std::unique_ptr<GradientSync>(
    const Config& options, const Cluster& cluster, SumOrder order)>;

/// By the device of the gradients: "cpu" (MPI), "cuda" (a plug-in's, NCCL).
Registry<GradientSyncFactory>& gradient_syncs();

/// Throws Error.
std::unique_ptr<GradientSync> make_gradient_sync(c10::DeviceType device, const Cluster& cluster,
                                                 SumOrder order = SumOrder::fastest);

/// By a connection of its own, since buckets of gradients interleave differently on each rank.
class ClusterSum final : public RankSum {
 public:
  ClusterSum(const Cluster& cluster, c10::DeviceType device, SumOrder order = SumOrder::fastest)
      : cluster_(cluster), device_(device), order_(order) {}

  void operator()(const at::Tensor& values) override {
    if (!sync_) sync_ = make_gradient_sync(device_, cluster_, order_);
    sync_->begin_sum(values, "statistics");
    sync_->wait();
  }

 private:
  const Cluster& cluster_;
  c10::DeviceType device_;
  SumOrder order_;
  std::unique_ptr<GradientSync> sync_;  // made by the first sum
};

}  // namespace millrace
