// What a flow that is measured is made of.
#pragma once

#include <cstdint>

#include "millrace/cli/command.h"
#include "millrace/dataflow/data_recipe.h"

namespace millrace::cli {

struct FlowRecipe : DataRecipe {
  std::uint64_t seed = 1;
};

/// Reads it as one of the two programs does: trainer-torch loads plug-ins and checks every key;
/// `trainer` checks [data] and train.seed, and throws NeedsLibtorch for what it does not know.
/// Throws ConfigError.
using ReadFlow = FlowRecipe(const ConfigFileArguments&);

/// Declares `bench dataflow`.
void add_bench_dataflow(CLI::App& bench, Action& action, ReadFlow* read);

}  // namespace millrace::cli
