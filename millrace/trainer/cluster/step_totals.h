// What the losses of a step in several parts are divided by.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// Totals of a step of one batch per rank, or of micro-batches, for which a first pass over all
/// adds them up. All ranks meet in every sum.
class StepTotals final : public LossTotals {
 public:
  /// Messages begin with the detector's `title`.
  explicit StepTotals(const Cluster& cluster, std::string title = "the detector")
      : cluster_(cluster), title_(std::move(title)) {}

  /// In the first pass of two: the sum over the ranks for this micro-batch. Else the total; throws
  /// Error if the first pass did not ask for it.
  double sum(std::string_view name, double local) override;

  /// After the first pass, or the only one. Throws Error if nothing was asked for: then losses of
  /// parts would not add up.
  void end_first_pass();

 private:
  const Cluster& cluster_;
  const std::string title_;
  bool are_known_ = false;
  std::map<std::string, double, std::less<>> sums_;
};

}  // namespace millrace
