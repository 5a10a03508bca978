// As `trainer` reads it, which has neither plug-ins nor detectors.
#include "millrace/cli/bench/flow_recipe.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "millrace/cli/program.h"

namespace millrace::cli {

FlowRecipe read_flow(const ConfigFileArguments& arguments) {
  constexpr std::array<std::string_view, 6> kTables = {"data",      "model",    "train",
                                                       "optimizer", "schedule", "callbacks"};
  const auto from = arguments.tree();
  for (const auto& [name, value] : from.table())
    if (!std::ranges::count(kTables, name)) throw NeedsLibtorch();
  Config complete;
  return {resolve_data(from, complete), seed_of(from)};
}

}  // namespace millrace::cli
