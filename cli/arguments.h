// Arguments that several subcommands share: a configuration, a trained model.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/trainer/run/trained_weights.h"

namespace millrace::cli {

/// A configuration of a training.
struct ConfigArguments : ConfigFileArguments {
  /// Reads the file, loads the plug-ins that it names and checks every key. Throws ConfigError.
  Recipe load() const;
};

/// A model that was trained: MODEL alone, or CONFIG with --weights.
struct ModelArguments {
  std::string model;  // MODEL or CONFIG
  std::vector<std::string> overrides;
  std::string weights;  // with CONFIG
  bool force = false;

  struct Loaded {
    Recipe recipe;
    TrainedWeights weights;
  };

  void add_to(CLI::App& command);
  /// Reads the configuration, or that which the model's card stands for, and calls `change` with
  /// it; then as ConfigArguments. Every rank calls it. Throws ConfigError, Error.
  Loaded load(const std::function<void(Config&)>& change = {},
              const Cluster& cluster = Cluster::alone()) const;
};

/// The flag --force-weights; its value goes to `insistence`.
void add_force_flag(CLI::App& command, bool& force);
Insistence insistence(bool force);

}  // namespace millrace::cli
