// The settings of a data flow that `bench dataflow` measures.
#pragma once

#include <cstdint>

#include "millrace/cli/command.h"
#include "millrace/dataflow/data_recipe.h"

namespace millrace::cli {

struct FlowRecipe : DataRecipe {
  std::uint64_t seed = 1;
};

/// Reads the settings from a configuration. Each program has its own version: trainer-torch loads
/// plug-ins and checks every key; `trainer` checks only [data] and train.seed, and throws
/// NeedsLibtorch if there are tables that it does not know. Throws ConfigError.
using ReadFlow = FlowRecipe(const ConfigFileArguments&);

/// Declares `bench dataflow`.
void add_bench_dataflow(CLI::App& bench, Action& action, ReadFlow* read);

}  // namespace millrace::cli
