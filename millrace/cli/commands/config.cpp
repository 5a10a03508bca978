// trainer config: the resolved configuration, each value with where it came from.
#include <fmt/format.h>

#include <memory>

#include "millrace/cli/command.h"
#include "millrace/cli/config_arguments.h"
#include "millrace/trainer/run/run.h"

namespace millrace::cli {

void add_config(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "config", "Print the resolved configuration and where each value came from");
  auto arguments = std::make_shared<ConfigArguments>();
  arguments->add_to(*command);
  add_examples(
      *command,
      {"trainer config configs/maskrcnn.toml",
       "trainer config configs/maskrcnn.toml --set optimizer.lr=0.01 --set model.masks=false"});
  command->callback([=, &action] {
    action = [=] {
      const auto recipe = arguments->load();
      make_callbacks(recipe);  // finds what they watch that nobody publishes
      fmt::print("{}", to_toml(recipe.tree, /*origins=*/true));
      return kDone;
    };
  });
}

}  // namespace millrace::cli
