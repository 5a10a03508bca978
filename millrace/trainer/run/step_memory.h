// What a training step takes of the machine's memory: said before the first one.
#pragma once

#include <opencv2/core/types.hpp>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Estimated bytes of one process. What the data flow holds on its way is data.memory's, and comes
/// on top.
struct StepMemory {
  double weights = 0;      // values, gradients and what the optimizer keeps
  double batch = 0;        // pixels, as bytes and as the model's numbers
  double activations = 0;  // see Detector::activation_bytes
  double total() const { return weights + batch + activations; }
};

/// `size`: of a batch's images, padded.
StepMemory step_memory(const Detector& detector, const Recipe& recipe, cv::Size size);

/// Logs what a step will take, where the size of batches follows from the configuration, beside
/// what is free for the processes of this host. Throws ConfigError, naming what to lower, where
/// even less than the estimate cannot fit; warns where it may not. Nothing for training on another
/// device than the processor.
void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster);

}  // namespace millrace
