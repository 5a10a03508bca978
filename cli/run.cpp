// trainer run: train from a configuration.
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/config_arguments.h"
#include "cli/sample_data.h"
#include "trainer/run.h"

namespace millrace::cli {
namespace {

struct Arguments {
  ConfigArguments config;
  std::filesystem::path output;
  bool resume = false;
};

int run(const Arguments& arguments) {
  const auto recipe = arguments.config.load();
  make_sample_on_first_use(recipe);
  const auto end =
      run_training(recipe, {.name = std::filesystem::path(arguments.config.file).stem().string(),
                            .output = arguments.output,
                            .resume = arguments.resume});
  return end.training.signalled ? kStoppedEarly : kDone;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Train a detector");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command);
  command->add_flag("--resume", arguments->resume,
                    "go on with the newest run of the output folder, from its newest checkpoint");
  command
      ->add_option("--output", arguments->output,
                   "folder for the run's folder; default: train.output")
      ->type_name("DIR");
  add_examples(*command,
               {"trainer run configs/maskrcnn.toml",
                "trainer run configs/maskrcnn.toml --set train.epochs=2 --output runs/short",
                "trainer run configs/maskrcnn.toml --output runs/short --resume"});
  command->callback([=, &action] { action = [=] { return run(*arguments); }; });
}

}  // namespace millrace::cli
