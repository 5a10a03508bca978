// The memory that a training step takes, estimated before the first one.
#pragma once

#include <opencv2/core/types.hpp>

#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Estimated bytes of one process, except the data flow's (data.memory).
struct StepMemory {
  double weights = 0;      // values, gradients, optimizer state
  double batch = 0;        // pixels, as bytes and as floats
  double activations = 0;  // see Detector::activation_bytes
  double total() const { return weights + batch + activations; }
};

/// `size`: of a batch's padded images.
StepMemory step_memory(const Detector& detector, const Recipe& recipe, cv::Size size);

/// Logs the estimate beside what is free on this host, if the configuration says the size of
/// batches and the device is the processor. Throws ConfigError, naming what to lower, if half of
/// the estimate does not fit; warns if all of it does not.
void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster);

}  // namespace millrace
