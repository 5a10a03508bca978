#include "millrace/cli/arguments.h"

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

void add_force_flag(CLI::App& command, bool& force) {
  command.add_flag("--force-weights", force,
                   "use weights although they contradict the configuration, or are not finite");
}

Insistence insistence(bool force) { return {force, "--force-weights"}; }

void WeightArguments::add_to(CLI::App& command) {
  command.add_option("--weights", file, "a checkpoint folder, .safetensors, .pth, .pkl or .npz")
      ->required()
      ->type_name("W");
  add_force_flag(command, force);
}

}  // namespace millrace::cli
