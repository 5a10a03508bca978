// What a training reads, in digests: to see whether another one reads the same.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Of training and validation: the annotation file with a digest of its bytes (not of one of 512
/// MiB or more, which is not read through), and how many samples there are with a digest of their
/// classes, ids, sizes and boxes. No pixels are read. Null for what this machine does not have.
nlohmann::ordered_json data_facts(const Recipe& recipe, const TrainData& train,
                                  const EvalData* validation);

/// Compares the facts in the record of a run's last start with those of one that resumes it. Throws
/// ConfigError if the training data differ, in the middle of which the run is; warns if the
/// validation data do.
void check_same_data(const nlohmann::ordered_json& last_start, const nlohmann::ordered_json& now);

/// The file of model.weights, with a digest of its bytes; null without one.
nlohmann::ordered_json weights_facts(const std::string& weights);

}  // namespace millrace
