// The values of a configuration by their full names.
#pragma once

#include <map>
#include <string>

#include "millrace/base/config.h"

namespace millrace {

/// All values in a table that are no tables, by dotted key: "optimizer.lr". Borrowed from `table`.
inline std::map<std::string, const Config*> leaves(const Config& table,
                                                   const std::string& above = "") {
  std::map<std::string, const Config*> all;
  for (const auto& [key, value] : table.table()) {
    if (value.is_table())
      all.merge(leaves(value, above + key + "."));
    else
      all[above + key] = &value;
  }
  return all;
}

}  // namespace millrace
