// Arguments that several subcommands share: a configuration or a trained model.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/trainer/run/trained_weights.h"

namespace millrace::cli {

/// The configuration of a training run.
struct ConfigArguments : ConfigFileArguments {
  /// Reads the file, loads the plug-ins that it names and checks every key. Throws ConfigError.
  Recipe load() const;
};

/// A trained model: MODEL alone, or CONFIG with --weights.
struct ModelArguments {
  std::string model;  // MODEL or CONFIG
  std::vector<std::string> overrides;
  std::string weights;  // only with CONFIG
  bool force = false;

  struct Loaded {
    Recipe recipe;
    TrainedWeights weights;
  };

  void add_to(CLI::App& command);
  /// Reads the configuration file, or the configuration on the model's card (model_card.h), calls
  /// `change` with it, then loads plug-ins and checks keys as ConfigArguments does. Must be called
  /// by every rank. Throws ConfigError, Error.
  Loaded load(const std::function<void(Config&)>& change = {},
              const Cluster& cluster = Cluster::alone()) const;
};

/// Adds the flag --force-weights, whose value is passed to `force_weights`.
void add_force_flag(CLI::App& command, bool& force);
ForceWeights force_weights(bool force);

}  // namespace millrace::cli
