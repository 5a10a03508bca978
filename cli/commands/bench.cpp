// trainer bench: measures the parts of a training, each beside its physical lower bound.
#include <utility>

#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/flow_recipe.h"

namespace millrace::cli {
namespace {

FlowRecipe read_checked_flow(const ConfigFileArguments& arguments) {
  auto recipe = ConfigArguments{arguments}.load();
  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  return {static_cast<DataRecipe&&>(std::move(recipe)), seed};
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", doc_of("bench"));
  command->require_subcommand(1);
  add_bench_dataflow(*command, action, read_checked_flow);
  add_bench_eval(*command, action);
  add_bench_model(*command, action);
  add_examples(*command, {"trainer bench dataflow configs/maskrcnn.toml --seconds 10",
                          "trainer bench model configs/maskrcnn.toml --steps 20",
                          "trainer bench eval --images 500"});
}

}  // namespace millrace::cli
