// trainer study: a configuration's variants, each trained with several seeds, and what differs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/base/log.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/cli/command.h"
#include "millrace/cli/terminal_text.h"
#include "millrace/coco/evaluation/matching.h"
#include "millrace/study/study_result.h"
#include "millrace/study/study_text.h"
#include "millrace/study/trainer_command.h"
#include "millrace/study/trainings.h"

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

struct StudyArguments {
  fs::path subject;  // a configuration, or the folder of a study
  std::int64_t seeds = 0;
  std::vector<std::string> varied, settings;
  fs::path out;  // empty: studies/<name of the configuration>
  std::size_t jobs = 1;
  bool json = false;

  bool trains() const {
    return seeds > 0 || !varied.empty() || !settings.empty() || !out.empty() || jobs != 1;
  }
};

fs::path trainer_program() { return fs::read_symlink("/proc/self/exe").parent_path() / "trainer"; }

/// The plan of a command line, after every variant's configuration was found to be one. Throws
/// ConfigError.
study::StudyPlan plan_of(const StudyArguments& arguments) {
  if (arguments.seeds == 0)
    throw ConfigError("--seeds is required with a configuration: how many seeds, such as 5");
  study::StudyPlan plan{.config_file = fs::absolute(arguments.subject),
                        .settings = arguments.settings,
                        .seeds = arguments.seeds};
  for (const auto& text : arguments.varied) {
    plan.varied.push_back(study::read_varied(text));
    if (std::ranges::count(plan.varied, plan.varied.back().key, &study::Varied::key) > 1)
      throw ConfigError(fmt::format("--vary {}: {} is varied twice: give all its values at once",
                                    text, plan.varied.back().key));
  }
  for (const std::string key : {"train.seed", "train.output"}) {
    const auto sets = [&](const std::string& text) { return text.starts_with(key + "="); };
    if (std::ranges::any_of(plan.settings, sets) || std::ranges::any_of(arguments.varied, sets))
      throw ConfigError(fmt::format("{}: the study sets it itself, from --seeds and --out", key));
  }
  std::map<std::map<std::string, std::string>, std::string> names;  // of variants, by all values
  for (const auto& variant : study::variants_of(plan)) {
    auto values = study::complete_configuration(trainer_program(), plan, variant);
    if (plan.configuration.empty()) plan.configuration = values;
    if (const auto [same, is_new] = names.emplace(std::move(values), variant.name); !is_new)
      throw ConfigError(fmt::format("--vary: {} and {} are the same configuration: leave out one",
                                    same->second, variant.name));
  }
  const auto threads = plan.configuration.find("train.threads");
  const auto own = threads == plan.configuration.end() ? 0 : std::stoll(threads->second);
  const auto cores = static_cast<std::int64_t>(coco::allowed_threads());
  plan.maths_threads =
      own > 0 ? own : std::max<std::int64_t>(1, cores / static_cast<std::int64_t>(arguments.jobs));
  return plan;
}

/// The study to run in a folder: that which is there, or a new one. Throws ConfigError if another
/// one is there.
study::Study study_in(const fs::path& folder, const study::StudyPlan& plan) {
  const auto there = study::read_study(folder);
  if (!there) return study::new_study(plan);
  if (const auto different = study::differences(there->plan, plan); !different.empty())
    throw ConfigError(fmt::format("{} has another study: {}; name another folder with --out",
                                  folder.string(), joined(different, "; ")));
  return study::continued(*there, plan);
}

void print_result(const StudyArguments& arguments, const study::StudyResult& result) {
  if (arguments.json)
    print(study_json(result));
  else
    print_lines(study_text(result));
}

/// Keeps the result in study.json, for `trainer report`.
void write_result(const fs::path& folder, const study::StudyResult& result) {
  const auto file = folder / study::kStudyFile;
  auto json = Json::parse(read_file(file));
  json["result"] = study_json(result);
  write_file_atomically(file, json.dump(1) + "\n");
}

/// Trains what is left; returns the exit code.
int run(const StudyArguments& arguments) {
  const StopSignals signals;
  release_stop_signals();
  const auto plan = plan_of(arguments);
  const auto folder = arguments.out.empty() ? fs::path("studies") / plan.name() : arguments.out;
  make_writable_folder(folder);
  const FileLock lock(folder / "lock");
  auto study = study_in(folder, plan);
  run_trainings(study, {.program = trainer_program(), .folder = folder, .jobs = arguments.jobs});
  if (const auto signal = StopSignals::received(); !signal.empty()) {
    spdlog::info("stopped by {}: {} of {} done; the same command goes on", signal,
                 study.count(study::RunState::done),
                 counted(static_cast<long long>(study.runs.size()), "run"));
    return kStoppedEarly;
  }
  const auto result = study_result(folder, study);
  write_result(folder, result);
  print_result(arguments, result);
  if (result.failed > 0) {
    std::vector<std::string> failed;
    for (const auto& run : study.runs)
      if (run.state == study::RunState::failed)
        failed.push_back(
            fmt::format("{} ({})", study.title(run), study::output_file(folder, run).string()));
    throw Error(fmt::format("{} of {} failed: {}; the same command tries again", result.failed,
                            counted(static_cast<long long>(result.runs), "run"),
                            joined(failed, "; ")));
  }
  suggest_next(
      fmt::format("trainer report {0}; trainer study {0} prints this again", folder.string()));
  return kDone;
}

int study(const StudyArguments& arguments) {
  if (!fs::is_directory(arguments.subject)) return run(arguments);
  release_stop_signals();
  if (arguments.trains())
    throw ConfigError(fmt::format(
        "{} is a folder: its study is shown, and takes --json alone; name a configuration to train",
        arguments.subject.string()));
  const auto there = study::read_study(arguments.subject);
  if (!there)
    throw ConfigError(fmt::format("{} has no study: there is no {}", arguments.subject.string(),
                                  study::kStudyFile));
  print_result(arguments, study_result(arguments.subject, *there));
  return kDone;
}

}  // namespace

void add_study(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "study",
                     "Train variants of a configuration with several seeds, and say what differs",
                     study, /*handles_signals=*/true);
  command
      .add_option("CONFIG", arguments.subject,
                  "the TOML file; or the folder of a study, whose table is printed")
      ->required();
  command.add_option("--seeds", arguments.seeds, "trainings of each variant: train.seed is 1 .. N")
      ->type_name("N")
      ->check(positive());
  command
      .add_option(
          "--vary", arguments.varied,
          "values that a key takes in turn, such as optimizer.lr=0.01,0.02; repeated, every "
          "combination is a variant. Variants are compared with the first")
      ->type_name("K=A,B")
      ->allow_extra_args(false);
  command
      .add_option("--set", arguments.settings,
                  "set a key of the configuration in all runs; may be repeated")
      ->type_name("K=V")
      ->allow_extra_args(false);
  command
      .add_option("--out", arguments.out,
                  "folder of the study; default: studies/ and the name of CONFIG. A study there "
                  "goes on")
      ->type_name("DIR");
  command.add_option("--jobs", arguments.jobs, "trainings at once, which share the cores")
      ->type_name("J")
      ->capture_default_str()
      ->check(positive());
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer study configs/maskrcnn.toml --seeds 5",
                "trainer study configs/maskrcnn.toml --seeds 5 --vary optimizer.lr=0.01,0.02",
                "trainer study configs/maskrcnn.toml --seeds 3 --vary optimizer.lr=0.01,0.02 "
                "--set train.epochs=2 --out studies/lr --jobs 2",
                "trainer study studies/lr --json"});
}

}  // namespace millrace::cli
