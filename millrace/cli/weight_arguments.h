// The trained weights that a subcommand works with.
#pragma once

#include <CLI/CLI.hpp>

#include "millrace/trainer/run/trained_weights.h"

namespace millrace::cli {

/// The flag --force-weights; what it was set to is for `insistence`.
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
