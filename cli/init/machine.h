// Properties of this machine on which a first configuration depends: its memory, weight files, and
// the time of training steps.
#pragma once

#include <cstdint>
#include <string>

#include "millrace/tools/data/network.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace::cli {

/// Returns the number of processors that this process may use, the free memory, and whether the
/// CUDA plug-in works.
advice::Machine this_machine();

/// Returns "2 cores" or "a GPU".
std::string text_of(const advice::Machine& machine);

/// Returns the file in data/weights or weights, relative to the current folder, that suits the
/// machine best; empty if not found.
std::string find_weights(const advice::Machine& machine);

/// Reads a weight file. Throws Error if it cannot be read; ConfigError if it has no ResNet.
advice::WeightFacts weight_facts(const std::string& file);

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
