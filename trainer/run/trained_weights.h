// A recipe beside weights: the card that it gives those that it trains, and what of it contradicts
// the card of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/models/weights/soundness.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/recipe.h"

namespace millrace {

/// The card of weights trained from a recipe.
ModelCard model_card(const Recipe& recipe, std::vector<std::string> classes,
                     std::vector<std::int64_t> category_ids);

/// A key of [model] whose value is not that which weights were trained with.
struct Contradiction {
  std::string key, was, is;  // model.pixel_std, values as TOML
  Origin origin;             // of the present value
  OfWeights decides;

  /// "model.pixel_std: trained with 1.0, here 2.0 (config.toml:3:1)"
  std::string text() const;
};

/// Every such key that decides something about weights (see OfWeights), except keys newer than the
/// card.
std::vector<Contradiction> contradictions(const ModelCard& card, const Recipe& recipe);

/// Weights of a run, for eval and predict.
struct TrainedWeights {
  std::string file;
  Insistence insistence;
};

/// On model.weights.
Insistence initial_insistence(const Recipe& recipe);

/// Compares model.weights, if any, with the recipe, and logs which parts differ. Throws ConfigError
/// if there is no such file or if it contradicts the recipe (model_card.h) in what its tensors
/// mean.
void check_initial_weights(const Recipe& recipe);

/// Throws ConfigError, unless model.force_weights says so, if the recipe reads the weights of a run
/// that it resumes in another way than `config`, the configuration of the run's checkpoint.
void check_resumed_weights(const Config& config, const Recipe& recipe);

/// The card of the chief's weights, if any. Every rank calls it.
std::optional<ModelCard> chiefs_card(const std::string& weights,
                                     const Cluster& cluster = Cluster::alone());

/// The same. Throws ConfigError, unless forced, if the recipe contradicts it.
std::optional<ModelCard> checked_card(const TrainedWeights& weights, const Recipe& recipe,
                                      const Cluster& cluster = Cluster::alone());

/// `split` with the classes of the weights, and the split's ids of these by name, or kNoCategory.
/// Throws ConfigError if a class of data.classes, or every class of the split, is unknown to the
/// weights; forced, the split's classes are taken for theirs if there are as many.
DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const TrainedWeights& weights);

}  // namespace millrace
