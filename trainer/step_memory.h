// What a training step takes of the machine's memory: said before the first one, and explained where it was too much.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "dataflow/sample.h"
#include "trainer/cluster.h"
#include "trainer/detector.h"
#include "trainer/recipe.h"

namespace millrace {

/// Estimated bytes of one process. What the data flow holds on its way is data.memory's, and comes on top.
struct StepMemory {
  double weights = 0;      // values, gradients and what the optimizer keeps
  double batch = 0;        // pixels, as bytes and as the model's numbers
  double activations = 0;  // see Detector::activation_bytes
  double total() const { return weights + batch + activations; }
};

/// `size`: of a batch's images, padded.
StepMemory step_memory(const Detector& detector, const Recipe& recipe, cv::Size size);

/// Logs what a step will take, where the size of batches follows from the configuration, beside what is free for the
/// processes of this host. Throws ConfigError, naming what to lower, where even less than the estimate cannot fit; warns
/// where it may not. Nothing for training on another device than the processor.
void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster);

/// Whether an allocation failed, of ours or of libtorch's.
bool is_out_of_memory(const std::exception& problem);

/// What to say of that in a step over these batches.
std::string out_of_memory_text(const std::vector<Batch>& batches);

}  // namespace millrace
