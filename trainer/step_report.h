// Losses, norms and metrics of a step: transferred from the device to the host in one copy, then
// combined over all ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/models/detector/metrics.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

/// Result of a step on one rank or over all ranks.
struct StepReport {
  Scalars losses;
  std::vector<MetricSums> metrics;
  std::vector<double> measured;  // numbers of Optimizer::measure; those of rank 0 are used
  std::string gradients;  // one character per trained parameter: '1' if it has a gradient, else '0'
  std::string statistics;         // bytes of the running statistics; empty = unchanged by the step
  bool statistics_alone = false;  // true if a micro-batch changed them without a sum over all
};

/// Combines the reports of all ranks in one exchange; the result is the same on every rank. `mine`:
/// reports by micro-batch; the first also holds the values of the whole rank. Losses and metrics
/// are added as a tree over all micro-batches. A parameter has a gradient if it has one on any
/// rank, and `statistics_alone` is true if it is on any rank. Norms and statistics are those of
/// rank 0. Throws Error beginning with `title` if the detectors returned different losses.
StepReport over_all_ranks(const Cluster& cluster, std::vector<StepReport> mine,
                          const std::string& title);

/// Collects losses and metrics of micro-batches by number (MicroBatchGroup). Threads may add
/// different micro-batches concurrently.
class StepNumbers {
 public:
  /// `title`: the detector's title, borrowed.
  StepNumbers(const std::string& title, std::size_t micro_batches, bool with_metrics)
      : title_(title), losses_(micro_batches), metrics_(with_metrics ? micro_batches : 0) {}

  void add(std::size_t number, const Losses& losses);

  /// Returns the metrics of a micro-batch to fill in; nullptr if metrics are not requested.
  Metrics* metrics(std::size_t number) { return metrics_.empty() ? nullptr : &metrics_[number]; }

  /// Queues the transfer. `measured`: result of Optimizer::measure. `moved`: one number, or
  /// undefined. Throws Error if the micro-batches have different losses.
  void queue(const at::Tensor& measured, const at::Tensor& moved);

  /// Queues the decision on the device: one fp32 number, 1 if a loss or a norm is not finite, else
  /// 0.
  at::Tensor bad() const;

  /// Waits for the device. Returns the reports by micro-batch, with the measured numbers in the
  /// first, and whether `moved` was not 0.
  std::pair<std::vector<StepReport>, bool> read();

 private:
  /// Returns the number of losses per batch.
  std::size_t count() const { return count_.load(); }
  /// Returns true if the number is on the device of the losses; the others are already on the host.
  bool is_there(const at::Tensor& number) const {
    return number.device() == losses_[0][0].second.device();
  }

  const std::string& title_;
  std::vector<Losses> losses_;  // losses by number; those of successive batches are appended
  std::vector<Metrics> metrics_;
  std::atomic<std::size_t> count_ = 0;
  at::Tensor decisive_;  // all losses, then all norms
  std::optional<DeviceNumbers> numbers_;
};

}  // namespace millrace
