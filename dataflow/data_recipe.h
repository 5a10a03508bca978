// The part of a configuration that describes a flow.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/dataflow/detection/data_options.h"

namespace millrace {

/// [data], checked, with every default.
struct DataRecipe {
  DataOptions data;
  std::vector<Config> sources;  // [[data.sources]], empty: the training split of data.root
  std::vector<Config> stages;   // [[data.stages]], complete; by default the default ones
};

/// Reads and checks [data] of a configuration and puts it, complete, into `tree`. No data is
/// opened. Throws ConfigError.
DataRecipe resolve_data(const Config& from, Config& tree);

/// train.seed of a configuration, or its default; no other key is read. Throws ConfigError.
std::uint64_t seed_of(const Config& from);

}  // namespace millrace
