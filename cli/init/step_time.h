// Estimates training time from real steps with the recipe's data, model and device.
#pragma once

#include <cstdint>

#include "millrace/tools/data/adviser.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

struct StepTime {
  double step_s = 0;        // median, including reading and decoding
  double cpu_s = 0;         // CPU time per step, all threads of the process
  std::int64_t steps = 0;   // number of timed steps
  double detect_s = 0;      // per validation image; 0 = not measured
  std::int64_t memory = 0;  // peak resident memory, bytes
};

/// Trains and times up to ten steps, or fewer if they take more than about twenty seconds, and
/// detects in a batch of the validation split. Writes no files. Throws what training throws.
StepTime measure_steps(const Recipe& recipe);

/// Returns the memory that one step with one image takes, in bytes. Throws what training throws.
double measure_image(Recipe recipe);

/// Duration of a whole training in seconds.
struct TrainingTime {
  double all = 0, evaluations = 0;  // `all` includes `evaluations`
};

/// Computes the duration from measured steps. `images`: number of images to evaluate on.
TrainingTime training_time(const advice::Plan& plan, const StepTime& step, std::size_t images);

}  // namespace millrace::cli
