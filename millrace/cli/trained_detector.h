// A detector with the weights of a training run, as eval and predict want it: of the classes that the weights know, in the
// configuration that they were trained in.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/data_split.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/detector/detector.h"
#include "millrace/trainer/run/recipe.h"
#include "millrace/weights/model_card.h"
#include "millrace/weights/soundness.h"

namespace millrace::cli {

/// The flag --force-weights; what it was set to is for `insistence`.
void add_force_flag(CLI::App& command, bool& force);
Insistence insistence(bool force);

/// The arguments --weights and --force-weights.
struct WeightArguments {
  std::string file;
  bool force = false;

  void add_to(CLI::App& command);
};

/// What the chief's weights say of themselves; nothing where they say nothing. Every rank calls it. Throws ConfigError,
/// unless it is forced, where the recipe contradicts them.
std::optional<ModelCard> checked_card(const WeightArguments& weights, const Recipe& recipe,
                                      const Cluster& cluster = Cluster::alone());

/// `split` with the labels of the weights: their classes, and the ids that the split has for these by name; kNoCategory
/// for those that it does not have. Throws ConfigError where a class of data.classes is none of theirs, or none of the
/// split's is; forced, the split's names stand for the weights' classes one by one if there are as many.
DataSplit labelled_by(const ModelCard& card, const DataSplit& split, const Recipe& recipe,
                      const WeightArguments& weights);

/// Builds the recipe's detector for `classes` and loads the weights into it. Throws Error where they do not give the
/// model every one of its parameters: what is left at random would make every figure meaningless.
std::unique_ptr<Detector> trained_detector(const Recipe& recipe,
                                           const std::vector<std::string>& classes,
                                           const WeightArguments& weights);

}  // namespace millrace::cli
