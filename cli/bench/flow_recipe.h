// What a flow that is measured is made of.
#pragma once

#include <cstdint>

#include "millrace/cli/config_file.h"
#include "millrace/dataflow/data_recipe.h"

namespace millrace::cli {

struct FlowRecipe : DataRecipe {
  std::uint64_t seed = 1;
};

/// Of a configuration, as each of the two programs reads it. trainer-torch loads its plug-ins and
/// checks every key. `trainer` checks [data] and train.seed, and leaves a configuration that has
/// plug-ins, or what it does not know, to trainer-torch: throws NeedsLibtorch. Throws ConfigError.
FlowRecipe read_flow(const ConfigFileArguments& arguments);

}  // namespace millrace::cli
