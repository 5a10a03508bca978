// The memory that a training takes on this host, forecast before its first step.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "millrace/dataflow/largest_batch.h"
#include "millrace/models/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// The training whose memory is asked for. Borrows all.
struct PlannedTraining {
  const Recipe& recipe;
  const Detector& detector;
  const TrainData& data;
  const EvalData* validation;  // nullptr: there is none
  const Cluster& cluster;
};

/// What one rank takes, bytes.
struct MemoryForecast {
  LargestBatch batch, test_batch;
  std::int64_t passes = 1;  // that the batch is computed in
  double present = 0;       // of the process at this time, the model among it
  double state = 0;         // the optimizer's, and a checkpoint's copies
  double step = 0;          // the batch, its activations, gradients
  double evaluation = 0;    // detecting in the test batch, and its flow; 0: no validation split
  double flow = 0;          // images between disk and steps

  /// Besides what there is at present.
  double more() const { return state + std::max(step, evaluation) + flow; }
};

/// In MiB, by name; "most": the largest resident memory.
nlohmann::ordered_json to_json(const MemoryForecast& forecast);

/// Nothing if the configuration gives no bound for the batches, the detector no estimate, or the
/// device is not the processor.
std::optional<MemoryForecast> forecast_memory(const PlannedTraining& training, std::int64_t passes);

struct MemoryFit {
  std::int64_t passes = 1;  // to compute a batch in
  std::optional<MemoryForecast> forecast;
};

/// With train.passes = 0, chooses the fewest passes from `least_passes` on that are sure to fit
/// into what is free on this host, the same on all ranks. Logs the forecast beside what is free;
/// warns if it may not fit. Throws ConfigError, naming what to lower, if it cannot. Every rank
/// calls it.
MemoryFit fit_into_memory(const PlannedTraining& training, std::int64_t least_passes);

}  // namespace millrace
