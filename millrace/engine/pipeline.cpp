#include "millrace/engine/pipeline.h"

#include "millrace/base/errors.h"

namespace millrace {

std::string used_name(const Config& table, const std::string& kind) {
  const auto* use = table.is_table() ? table.find("use") : nullptr;
  if (!use || !std::holds_alternative<std::string>(use->data))
    throw ConfigError(table.origin.text() + ": a " + kind +
                      " is a table with its name in `use = \"...\"`");
  return std::get<std::string>(use->data);
}

}  // namespace millrace
