// The totals of a training step.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// Totals of a step of one batch a rank, or of micro-batches, whose totals a first pass over all of
/// them adds up. The ranks meet in every sum.
class StepTotals final : public LossTotals {
 public:
  /// Messages begin with the detector's `title`.
  explicit StepTotals(const Cluster& cluster, std::string title = "the detector")
      : cluster_(cluster), title_(std::move(title)) {}

  /// In the first pass of two: over the ranks' parts of this micro-batch. Else the total; throws
  /// Error where the first pass did not ask for it.
  double sum(std::string_view name, double local) override;

  /// Between the passes of two, and behind the only one. Throws Error where nothing was asked for:
  /// the losses would not be shares of anything.
  void end_first_pass();

 private:
  const Cluster& cluster_;
  const std::string title_;
  bool are_known_ = false;
  std::map<std::string, double, std::less<>> sums_;
};

}  // namespace millrace
