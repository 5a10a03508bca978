// trainer run: train from a configuration, or look at a training again.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/command.h"
#include "millrace/cli/config_arguments.h"
#include "millrace/cli/program_version.h"
#include "millrace/cli/replay/replay.h"
#include "millrace/cli/replay/verify_determinism.h"
#include "millrace/cli/sample_data.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/run/run_folder.h"

namespace millrace::cli {
namespace {

constexpr auto kFlag = "true", kAuto = "auto";

struct RunArguments {
  ConfigArguments config;
  std::filesystem::path output;
  std::string resume;  // kFlag: --resume, kAuto: --resume=auto
  std::filesystem::path replay;
  std::int64_t verify_steps = 0;
};

Resume resume_mode(const std::string& word) {
  if (word.empty()) return Resume::no;
  return word == kAuto ? Resume::if_any : Resume::required;
}

int run(RunArguments arguments) {
  const ExitAtSignal at_signal(kStoppedEarly, "ended at once: there was no step to save");
  survive_broken_pipes();
  release_stop_signals();
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
    make_callbacks(recipe);  // what they watch that nobody publishes, before any data are made
    RunOptions options{.config_file = arguments.config.file,
                       .program = program_version(),
                       .output = arguments.output};
    if (options.output.empty()) options.output = recipe.train.output;
    const Session session(recipe, cluster);
    if (cluster.is_chief())
      options.resumed = find_run(options.output, identity_of(options.config_file, recipe.tree),
                                 resume_mode(arguments.resume));
    make_sample_on_first_use(recipe, cluster);
    const auto end = run_training(session, options);
    return end.training.signalled ? kStoppedEarly : kDone;
  });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Train a detector");
  auto arguments = std::make_shared<RunArguments>();
  arguments->config.add_to(*command)->required(false);
  command
      ->add_flag("--resume", arguments->resume,
                 "go on with the newest run of CONFIG in the output folder, from its newest "
                 "checkpoint, or fail where there is none; --resume=auto: start one then")
      ->check(CLI::Validator(
          [](const std::string& word) {
            return word == kFlag || word == kAuto
                       ? std::string()
                       : fmt::format("takes no value or '{}', not '{}'", kAuto, word);
          },
          ""));
  command
      ->add_option("--output", arguments->output,
                   "folder for the run's folder, with --resume also that itself; default: "
                   "train.output")
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
                "trainer run configs/maskrcnn.toml --output runs/short/maskrcnn-2 --resume",
                "trainer run configs/maskrcnn.toml --verify-determinism 20",
                "trainer run --replay runs/maskrcnn-1/diverged/step-000123"});
  command->callback([=, &action] {
    action = [=] { return run(*arguments); };
    action.handles_signals = true;
  });
}

}  // namespace millrace::cli
