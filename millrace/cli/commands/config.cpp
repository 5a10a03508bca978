// trainer config: the resolved configuration, each value with where it came from.
#include <fmt/format.h>

#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/trainer/run/run.h"

namespace millrace::cli {
namespace {

int config(const ConfigArguments& arguments) {
  const auto recipe = arguments.load();
  make_callbacks(recipe);  // checks that what they watch is published
  fmt::print("{}", to_toml(recipe.tree, /*origins=*/true));
  return kDone;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "config",
                     "Print the resolved configuration and where each value came from", config);
  arguments.add_to(command);
  add_examples(
      command,
      {"trainer config configs/maskrcnn.toml",
       "trainer config configs/maskrcnn.toml --set optimizer.lr=0.01 --set model.masks=false"});
}

}  // namespace millrace::cli
