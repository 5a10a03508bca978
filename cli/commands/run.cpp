// trainer run: trains from a configuration, replays a diverged step, or verifies determinism.
#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/cli/arguments.h"
#include "millrace/cli/command.h"
#include "millrace/cli/program.h"
#include "millrace/cli/replay/replay.h"
#include "millrace/coco/sample/sample.h"
#include "millrace/trainer/checkpoint/checkpoint.h"
#include "millrace/trainer/cluster/cluster.h"
#include "millrace/trainer/run/run.h"
#include "millrace/trainer/run/run_folder.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

constexpr auto kFlag = "true", kAuto = "auto";

struct RunArguments {
  ConfigArguments config;
  fs::path output;
  std::string resume;  // kFlag = --resume, kAuto = --resume=auto
  fs::path replay;
  std::int64_t verify_steps = 0;
};

Resume resume_mode(const std::string& word) {
  if (word.empty()) return Resume::no;
  return word == kAuto ? Resume::if_any : Resume::required;
}

void make_sample(const Recipe& recipe) {
  const fs::path root = recipe.data.root;
  const auto& sample = recipe.data.sample;
  if (!sample || !recipe.sources.empty()) return;
  if (fs::exists(root)) {
    if (const auto made = coco::sample_in(root); made && *made != *sample)
      log_warning(
          "{} has {} + {} images (seed {}), not the {} + {} (seed {}) of [data.sample], which "
          "applies only if the folder does not exist; delete it, or choose another data.root",
          root.string(), made->train, made->val, made->seed, sample->train, sample->val,
          sample->seed);
    return;
  }
  log_info("making the sample data set in {} ({} + {} images, seed {})", root.string(),
           sample->train, sample->val, sample->seed);
  coco::make_sample(root, *sample);
}

/// Makes the sample data set on every host if the configuration's own data.root is missing (see
/// DataOptions::sample) and training reads it rather than [[data.sources]]. Must be called by every
/// rank.
void make_sample_on_first_use(const Recipe& recipe, const Cluster& cluster = Cluster::alone()) {
  if (cluster.is_chief()) make_sample(recipe);  // first, because hosts may share a file system
  cluster.meet("sample data set of rank 0");
  if (cluster.local_rank() == 0 && !cluster.is_chief()) make_sample(recipe);
  cluster.meet("sample data sets");
}

/// Returns true if the page shows the end of the run; false if this start, which began at `began`,
/// has trained without writing the page.
bool is_up_to_date(const fs::path& page, fs::file_time_type began) {
  std::error_code none;
  const auto written = fs::last_write_time(page, none);
  if (none) return false;
  const auto trained = fs::last_write_time(page.parent_path() / "metrics.jsonl", none);
  return written >= began || none || trained < began;
}

/// Logs the suggested next command as the last line. `began`: when this start began.
void log_next(const RunEnd& end, fs::file_time_type began) {
  const bool has_model = !list_checkpoints(end.folder / "checkpoints").empty();
  if (end.training.signalled)
    return log_info("{}", has_model ? "next: the same command with --resume continues from there"
                                    : "next: the same command starts over; nothing was saved");
  const auto folder = end.folder.string();
  const auto page = end.folder / "report.html", pictures = end.folder / "pictures";
  std::string look = "trainer report " + folder;
  if (is_up_to_date(page, began))
    look = "open " + page.string();
  else if (fs::exists(pictures))
    look = fmt::format("see {}; {}", pictures.string(), look);
  log_info("next: {}{}", look,
           has_model ? fmt::format("; trainer predict {0} PHOTOS --out found; trainer export {0} "
                                   "--out model.onnx",
                                   folder)
                     : "");
}

int run(const RunArguments& arguments) {
  const auto began = fs::file_time_type::clock::now();
  const ExitAtSignal at_signal(kStoppedEarly, "ended at once; no step to save");
  survive_broken_pipes();
  release_stop_signals();
  if (!arguments.replay.empty()) {
    auto config = arguments.config;
    if (config.file.empty()) config.file = arguments.replay / "config.toml";
    return replay(config.load(), arguments.replay);
  }
  if (arguments.config.file.empty()) throw ConfigError("CONFIG is required without --replay");
  if (arguments.verify_steps > 0) {
    const auto recipe = arguments.config.load();
    make_sample_on_first_use(recipe);
    return verify_determinism(recipe, arguments.verify_steps);
  }
  return Cluster::run([&](const Cluster& cluster) {
    const auto recipe = arguments.config.load();
    make_callbacks(recipe);  // checks watched metrics before data are made
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
    log_next(end, began);
    return end.training.signalled ? kStoppedEarly : kDone;
  });
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "run", run, /*handles_signals=*/true);
  arguments.config.add_to(command)->required(false);
  command
      .add_flag("--resume", arguments.resume,
                "resume the newest run of CONFIG in the output folder from its newest checkpoint; "
                "if there is none, fail, or start a new run with --resume=auto")
      ->check(CLI::Validator(
          [](const std::string& word) {
            return word == kFlag || word == kAuto
                       ? std::string()
                       : fmt::format("expected no value or '{}', not '{}'", kAuto, word);
          },
          ""));
  add_option(
      command, "--out", arguments.output, "DIR",
      "parent of the run folder, or with --resume the run folder itself; default: train.output");
  add_renamed(command, "--output", "--out");
  auto* replay = add_option(command, "--replay", arguments.replay, "RUN/diverged/STEP",
                            "record of a non-finite step to repeat, to find the operator that "
                            "caused it; CONFIG is the one in the folder");
  auto* verify = add_option(command, "--verify-determinism", arguments.verify_steps, "STEPS",
                            "number of steps to train twice, comparing every byte")
                     ->check(positive());
  for (auto* alone : {replay, verify})
    for (const auto* other : {"--resume", "--out"}) alone->excludes(other);
  replay->excludes(verify);
  add_examples(command, {"trainer run configs/maskrcnn.toml",
                         "trainer run configs/maskrcnn.toml --set train.epochs=2 --out runs/short",
                         "trainer run configs/maskrcnn.toml --out runs/short --resume",
                         "trainer run configs/maskrcnn.toml --out runs/short/maskrcnn-2 --resume",
                         "trainer run configs/maskrcnn.toml --verify-determinism 20",
                         "trainer run --replay runs/maskrcnn-1/diverged/step-000123"});
}

}  // namespace millrace::cli
