#include "millrace/engine/pipeline.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"

namespace millrace {

std::string used_name(const Config& table, const std::string& kind) {
  const auto* use = table.is_table() ? table.find("use") : nullptr;
  if (!use || !std::holds_alternative<std::string>(use->data))
    throw ConfigError(table.origin.text() + ": a " + kind +
                      " is a table with its name in `use = \"...\"`");
  return std::get<std::string>(use->data);
}

void check_yields(const Plan& plan, const MessageType& wanted) {
  check(plan);
  const auto& last = plan.stages.back();
  if (!(last.yields == wanted))
    throw ConfigError(fmt::format("{}the last stage '{}' yields {}; the flow must end in {}",
                                  last.place(), last.name, last.yields.text(), wanted.text()));
}

}  // namespace millrace
