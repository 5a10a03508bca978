// How gradients, and whatever else is large, are added up over the ranks of a training.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>

#include "millrace/base/registry.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Sums tensors over all ranks while the caller goes on. One implementation a kind of device.
class GradientSync {
 public:
  virtual ~GradientSync() = default;

  /// Begins to replace the values (contiguous, of the device; float, or half precision) by their
  /// sum over all ranks. Every rank gives the same tensors in the same order. `what` names them in
  /// messages, and must live on.
  virtual void begin_sum(const at::Tensor& values, const char* what) = 0;

  /// Returns when all sums are there; on a device, when they will be for whatever its current
  /// stream does next. The same ranks sum the same values to the same bits every time.
  virtual void wait() = 0;
};

/// Throws Error where the device cannot be had. The cluster outlives what is made.
using GradientSyncFactory =
    std::function<std::unique_ptr<GradientSync>(const Config& options, const Cluster& cluster)>;

/// By the device of the gradients: "cpu" (MPI), "cuda" (a plug-in's, NCCL).
Registry<GradientSyncFactory>& gradient_syncs();

/// The one of a device. Throws Error.
std::unique_ptr<GradientSync> make_gradient_sync(c10::DeviceType device, const Cluster& cluster);

}  // namespace millrace
