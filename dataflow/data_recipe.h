// The part of a configuration that describes a data flow.
#pragma once

#include <cstdint>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/dataflow/detection/data_options.h"

namespace millrace {

/// The [data] section after checks, with every default filled in.
struct DataRecipe {
  DataOptions data;
  std::vector<Config> sources;  // [[data.sources]]; empty = training split of data.root
  std::vector<Config> stages;   // [[data.stages]], complete; the default list if not set
};

/// Reads and checks [data] of a configuration and writes the complete section into `tree`. Opens no
/// data. Throws ConfigError.
DataRecipe resolve_data(const Config& from, Config& tree);

/// Returns train.seed of a configuration, or its default; reads no other key. Throws ConfigError.
std::uint64_t seed_of(const Config& from);

}  // namespace millrace
