// The totals of a training step.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "trainer/cluster.h"
#include "trainer/loss_totals.h"

namespace millrace {

/// Totals of a step of one batch a rank, or of micro-batches, whose totals a first pass over all of them adds up. The
/// ranks meet in every sum.
class StepTotals final : public LossTotals {
 public:
  explicit StepTotals(const Cluster& cluster) : cluster_(cluster) {}

  /// In the first pass of two: over the ranks' parts of this micro-batch. Else the total; throws Error where the first
  /// pass did not ask for it.
  double sum(std::string_view name, double local) override;

  /// Between the passes of two, and behind the only one. Throws Error where nothing was asked for: the losses would not
  /// be shares of anything.
  void end_first_pass();

 private:
  const Cluster& cluster_;
  bool are_known_ = false;
  std::map<std::string, double, std::less<>> sums_;
};

}  // namespace millrace
