// Measured training runs with several numbers of ranks, and the predictions of scaling_model.h for
// them.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/tools/report/run_files.h"
#include "tests/bench/scaling/scaling_model.h"

namespace millrace::scaling {

/// Time of a step by part: means over the measured steps, in seconds or as fractions of the step.
struct ScaledRun {
  int ranks = 1;
  std::int64_t images_per_step = 0;  // over all ranks
  double step_s = 0;
  double compute_s = 0;   // of rank 0: losses, gradients, update
  double jitter_s = 0;    // standard deviation of compute_s over the steps
  double backward = 0;    // fraction of the backward pass in both
  double data_share = 0;  // waiting for batches
  double sync_share = 0;  // waiting for other ranks, including the work of the slowest
  double cpu_s = 0;       // per step, over all ranks

  double images_per_s() const { return static_cast<double>(images_per_step) / step_s; }
};

/// Reads a run folder that has the metrics of every step; the first `warm_up` steps are skipped.
/// Throws Error if no further steps exist.
ScaledRun measured(const report::RunFiles& run, int ranks, std::int64_t images_per_step,
                   std::int64_t warm_up);

/// Returns images per second and rank relative to `first`.
double efficiency(const ScaledRun& run, const ScaledRun& first);

struct ScalingParts {
  double gradient_bytes = 0;
  double cores = 1;    // of the host, shared by all ranks
  double threads = 1;  // per rank
  Network network;
};

/// Predicts the seconds of a step on `ranks` ranks from the first run alone: from its compute time
/// per image and its jitter. If the ranks have more threads than there are cores, they share the
/// cores.
double predicted_step_s(const ScaledRun& first, int ranks, std::int64_t images_per_step,
                        const ScalingParts& parts);

}  // namespace millrace::scaling
