// The configuration that a subcommand works with.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "millrace/trainer/run/recipe.h"

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

}  // namespace millrace::cli
