// The result of a step on one rank, and on all.
#pragma once

#include <string>
#include <vector>

#include "millrace/models/detector/figures.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

struct StepReport {
  Scalars losses;
  std::vector<FigureSums> figures;
  std::vector<double> measured;   // of Optimizer::measure; the chief's count
  std::string gradients;          // for each trained parameter '1' if it has a gradient, else '0'
  std::string statistics;         // bytes of the running statistics if the step has changed them
  bool statistics_alone = false;  // a micro-batch has changed them without the others
};

/// `mine`: by micro-batch, of which the first says what holds for the rank. One exchange: losses
/// and figures added as a tree of all micro-batches, gradients of any rank, the chief's norms and
/// statistics, and whether any rank changed them alone; the same on all ranks. Throws Error,
/// beginning with `title`, if the detectors gave different losses.
StepReport over_all_ranks(const Cluster& cluster, std::vector<StepReport> mine,
                          const std::string& title);

}  // namespace millrace
