// trainer study: a configuration's variants, each trained with several seeds, and what differs. The
// work is python/millrace/study.
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/python_module.h"

namespace millrace::cli {
namespace {

struct StudyArguments {
  std::string subject;  // a configuration, or the folder of a study
  std::int64_t seeds = 0;
  std::vector<std::string> varied, settings;
  std::string out;
  std::int64_t jobs = 1;
  bool json = false;
};

int study(const StudyArguments&) { run_python_module("study", "study"); }

}  // namespace

void add_study(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "study", study, /*handles_signals=*/true);
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
