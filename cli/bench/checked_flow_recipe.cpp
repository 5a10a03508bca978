// As trainer-torch reads it.
#include <utility>

#include "millrace/cli/arguments.h"
#include "millrace/cli/bench/flow_recipe.h"

namespace millrace::cli {

FlowRecipe read_flow(const ConfigFileArguments& arguments) {
  auto recipe = ConfigArguments{arguments}.load();
  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  return {static_cast<DataRecipe&&>(std::move(recipe)), seed};
}

}  // namespace millrace::cli
