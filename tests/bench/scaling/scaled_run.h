// Trainings with several numbers of ranks, measured, and what the model of scaling_model.h says of
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/tools/report/run_files.h"
#include "tests/bench/scaling/scaling_model.h"

namespace millrace::scaling {

/// Where the time of a step went, in means over the measured steps; seconds and shares of the time.
struct ScaledRun {
  int ranks = 1;
  std::int64_t images_per_step = 0;  // of all ranks
  double step_s = 0;
  double compute_s = 0;   // of the chief: losses, gradients, new values
  double jitter_s = 0;    // standard deviation of compute_s from step to step
  double backward = 0;    // share of the backward pass in both
  double data_share = 0;  // waited for batches
  double sync_share = 0;  // waited for other ranks, which includes the slowest's work
  double cpu_s = 0;       // a step, of all ranks

  double images_per_s() const { return static_cast<double>(images_per_step) / step_s; }
};

/// From a run's folder whose log has every step; the first `warm_up` steps do not count. Throws
/// Error if the folder has no such steps.
ScaledRun measured(const report::RunFiles& run, int ranks, std::int64_t images_per_step,
                   std::int64_t warm_up);

/// Images per second and rank, as a share of `first`'s.
double efficiency(const ScaledRun& run, const ScaledRun& first);

struct ScalingParts {
  double gradient_bytes = 0;
  double cores = 1;    // of the host, which all ranks share
  double threads = 1;  // that a rank computes with
  Network network;
};

/// Seconds of a step of so many ranks, from what the first run took alone: its compute time per
/// image and its jitter; ranks with more threads than there are cores take turns.
double predicted_step_s(const ScaledRun& first, int ranks, std::int64_t images_per_step,
                        const ScalingParts& parts);

}  // namespace millrace::scaling
