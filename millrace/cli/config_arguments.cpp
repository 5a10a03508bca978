#include "millrace/cli/config_arguments.h"

#include "millrace/base/config.h"
#include "millrace/plugins/loader.h"

namespace millrace::cli {

CLI::Option* ConfigArguments::add_to(CLI::App& command) {
  auto* config = command.add_option("CONFIG", file, "the TOML file, such as configs/maskrcnn.toml");
  config->required();
  command
      .add_option("--set", overrides,
                  "set a key of the configuration, such as train.seed=7; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false);
  return config;
}

Recipe ConfigArguments::load() const {
  auto tree = load_config(file, overrides);
  load_plugins(tree);
  return resolve(std::move(tree));
}

}  // namespace millrace::cli
