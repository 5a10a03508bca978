// Digests of the data of a training, to compare it with the data of another training.
#pragma once

#include <nlohmann/json.hpp>

#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/evaluation/evaluation.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Returns facts about training and validation data: the annotation file with a digest of its bytes
/// (omitted for files of 512 MiB or more), and the number of samples with a digest of their
/// classes, ids, sizes and boxes. Reads no pixels. Values are null for data that this machine does
/// not have.
nlohmann::ordered_json data_facts(const Recipe& recipe, const TrainData& train,
                                  const EvalData* validation);

/// Compares the facts in the record of a run's last start with those of a start that resumes it.
/// Throws ConfigError if the training data differ, since the run stopped in the middle of them;
/// warns if the validation data differ.
void check_same_data(const nlohmann::ordered_json& last_start, const nlohmann::ordered_json& now);

/// Returns the file of model.weights with a digest of its bytes; null if not set.
nlohmann::ordered_json weights_facts(const std::string& weights);

}  // namespace millrace
