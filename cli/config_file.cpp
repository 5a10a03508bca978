#include "millrace/cli/config_file.h"

namespace millrace::cli {

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "set a key of the configuration, such as train.seed=7; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false);
}

CLI::Option* ConfigFileArguments::add_to(CLI::App& command) {
  auto* config = command.add_option("CONFIG", file, "the TOML file, such as configs/maskrcnn.toml");
  config->required();
  add_overrides(command, overrides);
  return config;
}

}  // namespace millrace::cli
