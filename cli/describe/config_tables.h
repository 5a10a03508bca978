// The tables of a configuration and their options, except the options of components.
#pragma once

#include <string>
#include <vector>

#include "millrace/base/registry.h"

namespace millrace::cli {

/// A table and its keys. A name in brackets denotes a list of tables.
struct ConfigTable {
  std::string name;  // "data.sample", "[data.stages]"; empty for keys before all tables
  std::string doc;
  std::vector<OptionHelp> options;
};

/// Returns all tables, in the order of `trainer list`.
std::vector<ConfigTable> config_tables();

}  // namespace millrace::cli
