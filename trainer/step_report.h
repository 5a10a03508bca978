// Result of a step on one rank and over all ranks.
#pragma once

#include <string>
#include <vector>

#include "millrace/models/detector/metrics.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

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

}  // namespace millrace
