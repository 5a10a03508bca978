#include "millrace/base/sections.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"

namespace millrace {

std::vector<Config> list_of_tables(const Config& section, const std::string& of, const char* name) {
  const auto* value = section.find(name);
  if (!value) return {};
  const auto* list = std::get_if<Config::Array>(&value->data);
  if (!list)
    throw ConfigError(fmt::format("{0}: {1}.{2} is a list of tables: write [[{1}.{2}]]",
                                  value->origin.text(), of, name));
  return *list;
}

}  // namespace millrace
