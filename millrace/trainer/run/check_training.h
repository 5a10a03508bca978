// Whether a detector can learn from the data that it is given, before its first step.
#pragma once

#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"

namespace millrace {

/// What is known of a training on `data`: its objects are counted once, when somebody asks.
TrainingFacts training_facts(const TrainData& data, bool starts_random, std::int64_t ranks = 1);

/// Asks the detector; the chief logs its warnings. Throws ConfigError where it refuses. Every rank
/// calls it.
void check_training(const Detector& detector, const TrainingFacts& facts, const Cluster& cluster);

}  // namespace millrace
