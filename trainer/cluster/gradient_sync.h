// Sums of large tensors over the ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "millrace/base/registry.h"
#include "millrace/models/detector/rank_sum.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Sums tensors over all ranks in the background. There is one implementation per kind of device.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Begins to replace `values` (contiguous, on the device, float or half precision) by their sum
  /// over all ranks. Every rank passes the same tensors in the same order. `what`: a literal that
  /// names the tensors in messages.
  virtual void begin_sum(const at::Tensor& values, const char* what) = 0;

  /// Waits for all sums; on a GPU, its current stream waits. For the same ranks and values, the
  /// result is the same bit for bit.
  virtual void wait() = 0;
};

/// Order in which the values of several ranks are added; always reproducible.
enum class SumOrder {
  fastest,  // order of the device's library
  tree,     // tree_sum by rank, required by train.micro_batch
};

/// Creates a GradientSync, which borrows the cluster. Throws Error if the device is not available.
using GradientSyncFactory = std::function<std::unique_ptr<GradientSync>(
    const Config& options, const Cluster& cluster, SumOrder order)>;

/// Registry by the device of the gradients: "cpu" (MPI), "cuda" (NCCL, from a plug-in).
Registry<GradientSyncFactory>& gradient_syncs();

/// Creates the GradientSync of a device. Throws Error.
std::unique_ptr<GradientSync> make_gradient_sync(c10::DeviceType device, const Cluster& cluster,
                                                 SumOrder order = SumOrder::fastest);

/// Sums statistics over the ranks. It uses a connection of its own, since its sums interleave with
/// those of gradient buckets in a different order on each rank.
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
  std::unique_ptr<GradientSync> sync_;  // connection, created by the first sum
};

}  // namespace millrace
