// Model cards: the card of weights that a recipe trains, and contradictions between a recipe and
// the card of existing weights.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/models/weights/force_weights.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// Returns the card of weights trained from a recipe.
ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids);

/// A key of [model] whose value differs from the one that the weights were trained with.
struct Contradiction {
  std::string key, was, is;  // key such as model.pixel_std, and both values as TOML
  Origin origin;             // origin of the current value
  WeightEffect effect;

  /// Returns e.g. "model.pixel_std: trained with 1.0, here 2.0 (config.toml:3:1)".
  std::string text() const;
};

/// Returns all contradictions in keys that affect the meaning of weights (see WeightEffect). Keys
/// that are newer than the card are ignored.
std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe);

/// Weights of a run, for eval and predict.
struct TrainedWeights {
  std::string file;
  ForceWeights force_weights;
};

/// Returns the decision of model.force_weights, for model.weights.
ForceWeights initial_force_weights(const Recipe& recipe);

/// Compares model.weights, if set, with the recipe, and logs the parts that differ. Throws
/// ConfigError if the file does not exist, or if its card contradicts the recipe in the meaning of
/// its tensors (model_card.h).
void check_initial_weights(const Recipe& recipe);

/// Throws ConfigError, unless model.force_weights is set, if the recipe interprets the weights of a
/// resumed run differently than `config`, the configuration of the run's checkpoint.
void check_resumed_weights(const Config& config, const Recipe& recipe);

/// Returns the card of rank 0's weights, if they have one. Every rank calls it.
std::optional<ModelCard> chiefs_card(const std::string& weights,
                                     const Cluster& cluster = Cluster::alone());

/// Like chiefs_card, but throws ConfigError if the recipe contradicts the card, unless forced.
std::optional<ModelCard> checked_card(const TrainedWeights& weights, const Recipe& recipe,
                                      const Cluster& cluster = Cluster::alone());

/// Returns `split` with the classes of the weights; its category ids are matched to them by name,
/// kNoCategory if the split lacks a class. Throws ConfigError if the weights do not know a class of
/// data.classes, or no class of the split. If forced, the split's classes are used instead,
/// provided that the number of classes is the same.
DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const TrainedWeights& weights);

}  // namespace millrace
