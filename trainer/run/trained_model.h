// A trained model, which eval, predict and config accept instead of a configuration.
#pragma once

#include <filesystem>
#include <string>

#include "millrace/base/config.h"
#include "millrace/models/weights/model_card.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// Returns true if a command-line argument names a model: a folder, or a file with an extension of
/// weight files. Any other argument names a configuration.
bool names_model(const std::filesystem::path& word);

struct TrainedModel {
  std::string file;  // weight file
  ModelCard card;

  /// Returns the configuration that the card describes: [model], and the keys of [data] for
  /// detection.
  Config config() const;

  /// Returns a description with a line for each known fact.
  std::string text() const;
};

/// Opens a weight file, a checkpoint's folder, or a run's folder, of which the newest checkpoint is
/// used. Rank 0 reads; every rank calls it. Throws Error if the file does not exist, ConfigError if
/// it has no model card.
TrainedModel open_model(const std::filesystem::path& model,
                        const Cluster& cluster = Cluster::alone());

}  // namespace millrace
