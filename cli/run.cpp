// trainer run: train from a configuration, or look at a training again.
#include <filesystem>
#include <memory>

#include "base/errors.h"
#include "cli/command.h"
#include "cli/config_arguments.h"
#include "cli/replay.h"
#include "cli/sample_data.h"
#include "cli/start_together.h"
#include "cli/verify_determinism.h"
#include "trainer/cluster.h"
#include "trainer/run.h"
#include "trainer/stop_signals.h"

namespace millrace::cli {
namespace {

struct Arguments {
  ConfigArguments config;
  std::filesystem::path output;
  bool resume = false;
  std::filesystem::path replay;
  std::int64_t verify_steps = 0;
};

int run(Arguments arguments) {
  const ExitAtSignal at_signal;
  if (!arguments.replay.empty()) {
    if (arguments.config.file.empty()) arguments.config.file = arguments.replay / "config.toml";
    return replay(arguments.config.load(), arguments.replay);
  }
  if (arguments.config.file.empty()) throw ConfigError("CONFIG is required, unless with --replay");
  if (arguments.verify_steps > 0) {
    const auto recipe = arguments.config.load();
    make_sample_on_first_use(recipe);
    return verify_determinism(recipe, arguments.verify_steps);
  }
  return Cluster::run([&](const Cluster& cluster) {
    const auto recipe = arguments.config.load();
    start_together(recipe, cluster);
    make_sample_together(recipe, cluster);
    const auto end =
        run_training(recipe,
                     {.name = std::filesystem::path(arguments.config.file).stem().string(),
                      .output = arguments.output,
                      .resume = arguments.resume},
                     cluster);
    return end.training.signalled ? kStoppedEarly : kDone;
  });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Train a detector");
  auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(*command)->required(false);
  command->add_flag("--resume", arguments->resume,
                    "go on with the newest run of the output folder, from its newest checkpoint");
  command
      ->add_option("--output", arguments->output,
                   "folder for the run's folder; default: train.output")
      ->type_name("DIR");
  auto* replay = command
                     ->add_option("--replay", arguments->replay,
                                  "repeat a step that was not finite, and say where it went wrong; "
                                  "CONFIG is the one in the folder")
                     ->type_name("RUN/diverged/STEP");
  auto* verify = command
                     ->add_option("--verify-determinism", arguments->verify_steps,
                                  "train so many steps twice and compare every byte")
                     ->type_name("STEPS")
                     ->check(positive());
  for (auto* alone : {replay, verify})
    for (const auto* other : {"--resume", "--output"}) alone->excludes(other);
  replay->excludes(verify);
  add_examples(*command,
               {"trainer run configs/maskrcnn.toml",
                "trainer run configs/maskrcnn.toml --set train.epochs=2 --output runs/short",
                "trainer run configs/maskrcnn.toml --output runs/short --resume",
                "trainer run configs/maskrcnn.toml --verify-determinism 20",
                "trainer run --replay runs/maskrcnn-1/diverged/step-000123"});
  command->callback([=, &action] { action = [=] { return run(*arguments); }; });
}

}  // namespace millrace::cli
