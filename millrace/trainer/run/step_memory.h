// The memory that a training step takes, estimated before the first one.
#pragma once

#include "millrace/detector/detector.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Logs the estimate, except the data flow's memory (data.memory), beside what is free on this
/// host, if the configuration says the size of batches and the device is the processor. Throws
/// ConfigError, naming what to lower, if half of the estimate does not fit; warns if all of it does
/// not.
void check_step_memory(const Detector& detector, const Recipe& recipe, const Cluster& cluster);

}  // namespace millrace
