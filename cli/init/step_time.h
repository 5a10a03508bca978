// How long a training will take: real steps with the recipe's data, model and device.
#pragma once

#include <cstdint>

#include "millrace/tools/data/adviser.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

struct StepTime {
  double step_s = 0;        // the median, with its share of reading and decoding
  double cpu_s = 0;         // of the process, a step: of all its threads together
  std::int64_t steps = 0;   // that were timed
  double detect_s = 0;      // of a validation image; 0: not measured
  std::int64_t memory = 0;  // the most that was resident, bytes
};

/// Trains a few steps, ten at most or about twenty seconds, and detects in a batch of the
/// validation split. Nothing is written. Throws as a training does.
StepTime measure_steps(const Recipe& recipe);

/// The memory that one step with one image takes, bytes. Throws as a training does.
double measure_image(Recipe recipe);

/// Seconds of a whole training.
struct TrainingTime {
  double all = 0, evaluations = 0;  // the latter are among the former
};

/// By such steps. `images`: to evaluate on.
TrainingTime training_time(const advice::Plan& plan, const StepTime& step, std::size_t images);

}  // namespace millrace::cli
