// The arguments that name a configuration.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "millrace/base/config.h"

namespace millrace::cli {

/// The option --set K=V.
void add_overrides(CLI::App& command, std::vector<std::string>& overrides);

/// The arguments CONFIG and --set K=V.
struct ConfigFileArguments {
  std::string file;
  std::vector<std::string> overrides;

  /// Returns CONFIG, which is required.
  CLI::Option* add_to(CLI::App& command);
  /// The file as it is, none of its keys checked. Throws ConfigError.
  Config tree() const { return load_config(file, overrides); }
};

}  // namespace millrace::cli
