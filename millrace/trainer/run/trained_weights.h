// Weights that a recipe is used with, beside what their card says of them.
#pragma once

#include <optional>
#include <string>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/weights/model_card.h"
#include "millrace/weights/soundness.h"

namespace millrace {

/// Weights of a training run, as eval and predict want them.
struct TrainedWeights {
  std::string file;
  Insistence insistence;
};

/// On weights that training starts from.
Insistence initial_insistence(const Recipe& recipe);

/// Compares what model.weights names, if anything, with the recipe, and logs where heads and other
/// parts differ. Throws ConfigError where there is no such file or it contradicts the recipe
/// (model_card.h) in what its tensors mean.
void check_initial_weights(const Recipe& recipe);

/// What the chief's weights say of themselves; nothing where they say nothing. Every rank calls it.
/// Throws ConfigError, unless it is forced, where the recipe contradicts them.
std::optional<ModelCard> checked_card(const TrainedWeights& weights, const Recipe& recipe,
                                      const Cluster& cluster = Cluster::alone());

/// `split` with the labels of the weights: their classes, and the ids that the split has for these
/// by name; kNoCategory for those that it does not have. Throws ConfigError where a class of
/// data.classes is none of theirs, or none of the split's is; forced, the split's names stand for
/// the weights' classes one by one if there are as many.
DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const TrainedWeights& weights);

}  // namespace millrace
