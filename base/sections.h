// Sections of a configuration that become structs of options, and leave their complete table.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/base/options.h"

namespace millrace {

/// Reads a section that `T` describes except `others`, and puts it, complete, into `tree`. Throws
/// ConfigError.
template <class T>
T take_section(const Config& from, const char* name, Config& tree,
               std::initializer_list<std::string_view> others = {}) {
  auto table = from.section(name);
  auto options = read_options<T>(table, others);
  complete_options<T>(table);
  tree.set(name, std::move(table));
  return options;
}

/// The tables of the list `SECTION.NAME`, if any; `of`: the section's name. Throws ConfigError if
/// it is no list.
std::vector<Config> list_of_tables(const Config& section, const std::string& of, const char* name);

}  // namespace millrace
