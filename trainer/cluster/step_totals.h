// Divisors of the losses of a step.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// The counts by which the losses of a step are divided. They are summed as one tree over the
/// concurrent micro-batches of a rank and over the ranks, then over the successive groups of
/// micro-batches in their order. For one step.
///
/// Groups after the first are counted in advance; the first group is counted with its losses, so
/// that its forward pass runs only once.
class StepTotals {
 public:
  /// Messages begin with the detector's `title`.
  explicit StepTotals(const Cluster& cluster, std::string title = "the detector")
      : cluster_(cluster), title_(std::move(title)), groups_(1) {}

  /// Adds the counts, by micro-batch, of the next group; the first call is for the second group.
  void add(const std::vector<LossDivisors>& group) { groups_.push_back(sum_of(group)); }

  /// Adds the counts of the first group; call it after those of all other groups. COLLECTIVE, once
  /// per step: all ranks exchange their counts. Throws Error on every rank if two batches of the
  /// step have counts of different names.
  void complete(const std::vector<LossDivisors>& first);

  /// Returns each loss divided by its total. Call after `complete`.
  Losses means(const LossSums& sums) const;

 private:
  LossDivisors sum_of(const std::vector<LossDivisors>& group) const;

  const Cluster& cluster_;
  const std::string title_;
  std::vector<LossDivisors> groups_;  // counts of this rank by group
  LossDivisors totals_;
};

}  // namespace millrace
