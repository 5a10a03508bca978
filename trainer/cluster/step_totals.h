// What the losses of a step are divided by.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// The counts of a step's losses, added up over the micro-batches that a rank computes side by side
/// and over the ranks as one tree, then over the groups of micro-batches that follow each other, in
/// their order. For one step.
///
/// Groups after the first are counted before; the first is counted by its losses, so that its
/// forward pass runs once.
class StepTotals {
 public:
  /// Messages begin with the detector's `title`.
  explicit StepTotals(const Cluster& cluster, std::string title = "the detector")
      : cluster_(cluster), title_(std::move(title)), groups_(1) {}

  /// The counts of the group after the last, the second at first; by micro-batch.
  void add(const std::vector<Counts>& group) { groups_.push_back(sum_of(group)); }

  /// The counts of the first group, after those of all others. COLLECTIVE, once a step: all ranks
  /// exchange what they have counted. Throws Error, on every rank, if two batches of the step have
  /// counts of other names.
  void complete(const std::vector<Counts>& first);

  /// After `complete`: each loss divided by its total.
  Losses means(const LossSums& sums) const;

 private:
  Counts sum_of(const std::vector<Counts>& group) const;

  const Cluster& cluster_;
  const std::string title_;
  std::vector<Counts> groups_;  // of this rank
  Counts totals_;
};

}  // namespace millrace
