// trainer diff: what two runs were made with and what came of it, beside each other. The work is
// python/millrace/diff.py.
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/python_module.h"

namespace millrace::cli {
namespace {

struct DiffArguments {
  std::vector<std::string> runs;
  bool json = false;
};

int diff(const DiffArguments&) { run_python_module("diff", "diff"); }

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "diff", diff);
  command
      .add_option("run", arguments.runs,
                  "two folders of runs; also of one that trains or was killed")
      ->required()
      ->expected(2)
      ->type_name("RUN");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer diff runs/maskrcnn-1 runs/maskrcnn-2"});
}

}  // namespace millrace::cli
