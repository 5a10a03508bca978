// trainer config: the resolved configuration, each value with where it came from; or what a file of
// weights says of itself.
#include <fmt/format.h>

#include <sstream>
#include <string>

#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/run/trained_model.h"

namespace millrace::cli {
namespace {

/// Facts as comments above the tables that the card has, so that all is TOML.
int show_model(const ConfigArguments& arguments) {
  const auto model = open_model(arguments.file);
  auto tree = model.config();
  apply_overrides(tree, arguments.overrides);
  std::istringstream facts(model.text());
  for (std::string line; std::getline(facts, line);) print_text("# " + line + "\n");
  print_text("\n" + to_toml(tree));
  return kDone;
}

int config(const ConfigArguments& arguments) {
  if (names_model(arguments.file)) return show_model(arguments);
  const auto recipe = arguments.load();
  make_callbacks(recipe);  // checks that what they watch is published
  fmt::print("{}", to_toml(recipe.tree, /*origins=*/true));
  return kDone;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "config",
                     "Print the resolved configuration and where each value came from; of a "
                     "model.safetensors, what it is",
                     config);
  arguments.add_to(command);
  add_examples(
      command,
      {"trainer config configs/maskrcnn.toml", "trainer config model.safetensors",
       "trainer config configs/maskrcnn.toml --set optimizer.lr=0.01 --set model.masks=false"});
}

}  // namespace millrace::cli
