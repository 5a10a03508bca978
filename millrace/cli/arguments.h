// Arguments that several subcommands share: the configuration and trained weights.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "millrace/trainer/run/trained_weights.h"

namespace millrace::cli {

/// The arguments CONFIG and --set K=V.
struct ConfigArguments {
  std::string file;
  std::vector<std::string> overrides;

  /// Returns CONFIG, which is required.
  CLI::Option* add_to(CLI::App& command);
  /// Reads the file, loads the plug-ins that it names and checks every key. Throws ConfigError.
  Recipe load() const;
};

/// The flag --force-weights; its value goes to `insistence`.
void add_force_flag(CLI::App& command, bool& force);
Insistence insistence(bool force);

/// The arguments --weights and --force-weights.
struct WeightArguments {
  std::string file;
  bool force = false;

  void add_to(CLI::App& command);
  TrainedWeights weights() const { return {file, insistence(force)}; }
};

}  // namespace millrace::cli
