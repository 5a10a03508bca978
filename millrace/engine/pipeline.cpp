#include "millrace/engine/pipeline.h"

#include "millrace/base/errors.h"
#include "millrace/base/renamed_keys.h"

namespace millrace {

std::string used_name(const Config& table, const std::string& kind) {
  const auto* type = find_type(table, "use");
  if (!type || !std::holds_alternative<std::string>(type->data))
    throw ConfigError(table.origin.text() + ": a " + kind +
                      " is a table with its name in `type = \"...\"`");
  return std::get<std::string>(type->data);
}

}  // namespace millrace
