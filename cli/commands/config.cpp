// trainer config: prints the resolved configuration with the origin of each value, or the metadata
// of a weight file, or the schema of all configurations.
#include <fmt/format.h>

#include <sstream>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/describe/config_schema.h"
#include "millrace/plugins/loader.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/run/trained_model.h"

namespace millrace::cli {
namespace {

struct ConfigCommandArguments : ConfigArguments {
  bool schema = false;
};

/// Prints the schema, including plug-ins that the configuration names, if one is given.
int show_schema(const ConfigArguments& arguments) {
  Config tree;
  if (arguments.file.empty())
    apply_overrides(tree, arguments.overrides);
  else
    tree = load_config(arguments.file, arguments.overrides);
  load_plugins(tree);
  print_text(config_schema().dump(1) + "\n");
  suggest_next(
      "trainer config --schema >schema.json, then make `#:schema ./schema.json` the first line of "
      "a configuration (docs/install.md)");
  return kDone;
}

/// Prints a model's facts as comments, then the tables on its card, so that the output is valid
/// TOML.
int show_model(const ConfigArguments& arguments) {
  const auto model = open_model(arguments.file);
  auto tree = model.config();
  apply_overrides(tree, arguments.overrides);
  std::istringstream facts(model.text());
  for (std::string line; std::getline(facts, line);) print_text("# " + line + "\n");
  print_text("\n" + to_toml(tree));
  suggest_next("trainer predict {0} PHOTOS --out found; trainer eval {0} --data DIR",
               arguments.file);
  return kDone;
}

int config(const ConfigCommandArguments& arguments) {
  if (arguments.schema) return show_schema(arguments);
  if (arguments.file.empty()) throw ConfigError("CONFIG is required without --schema");
  if (names_model(arguments.file)) return show_model(arguments);
  const auto recipe = arguments.load();
  make_callbacks(recipe);  // checks that metrics they need are published
  print_formatted("{}", to_toml(recipe.tree, /*origins=*/true));
  suggest_next("trainer doctor {0}, then trainer run {0}", arguments.file);
  return kDone;
}

}  // namespace

void add_config(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "config", config);
  arguments.add_to(command)->required(false);
  command.add_flag("--schema", arguments.schema,
                   "print the JSON schema of configurations for editors instead, including the "
                   "plug-ins of CONFIG");
  add_examples(
      command,
      {"trainer config configs/maskrcnn.toml", "trainer config model.safetensors",
       "trainer config --schema >millrace.schema.json",
       "trainer config configs/maskrcnn.toml --set optimizer.lr=0.01 --set model.masks=false"});
}

}  // namespace millrace::cli
