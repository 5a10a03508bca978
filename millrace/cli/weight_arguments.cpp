#include "millrace/cli/weight_arguments.h"

namespace millrace::cli {

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
