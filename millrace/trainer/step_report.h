// What came of a step on one rank, and on all.
#pragma once

#include <string>
#include <vector>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/figures.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

/// What every rank has to say once its part of a step is done.
struct StepReport {
  Scalars losses;
  std::vector<FigureSums> figures;
  std::string gradients;   // a '1' for each trained parameter that has a gradient, else a '0'
  std::string statistics;  // bytes of the running statistics where the step has moved them
};

/// One exchange: losses and figures summed, in the order of ranks; gradients of all that any rank
/// has; the chief's statistics. The same on all ranks. Throws Error where the ranks' detectors gave
/// other losses; it begins with `title`.
StepReport over_all_ranks(const Cluster& cluster, StepReport mine, const std::string& title);

}  // namespace millrace
