// A model by itself: what eval, predict and config take in place of a configuration.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/base/config.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Whether a word of the command line names a model: a folder, or a file with an extension of
/// weights. All else names a configuration.
bool names_model(const std::filesystem::path& word);

struct TrainedModel {
  std::string file;  // the weights
  ModelCard card;

  /// The configuration that the card stands for: [model], and what [data] says of detection.
  Config config() const;

  /// What it is, for people: a line for each fact that is known.
  std::string text() const;
};

/// Opens weights, a checkpoint's folder, or a run's, which stands for its newest checkpoint. The
/// chief reads; every rank calls it. Throws Error if there is no such file, ConfigError if it has
/// no card.
TrainedModel open_model(const std::filesystem::path& model,
                        const Cluster& cluster = Cluster::alone());

}  // namespace millrace
