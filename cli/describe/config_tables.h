// The tables of a configuration and the options of each, apart from those of components.
#pragma once

#include <string>
#include <vector>

#include "millrace/base/registry.h"

namespace millrace::cli {

/// A table and its keys. Names in brackets are lists of tables.
struct ConfigTable {
  std::string name;  // "data.sample", "[data.stages]"; empty: the keys before all tables
  std::string doc;
  std::vector<OptionHelp> options;
};

/// All of them, in the order of `trainer list`.
std::vector<ConfigTable> config_tables();

}  // namespace millrace::cli
