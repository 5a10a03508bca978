// trainer status: how a run is, rank by rank, also while it hangs.
#include <chrono>
#include <filesystem>

#include "millrace/cli/command.h"
#include "millrace/cli/status/fleet_view.h"
#include "millrace/cli/terminal_text.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kPatience{2};

struct StatusArguments {
  std::filesystem::path run;
  bool json = false;
};

int status(const StatusArguments& arguments) {
  const auto fleet = look_at_fleet(newest_run_in(arguments.run), kPatience);
  if (arguments.json)
    print(to_json(fleet));
  else
    print_lines(to_text(fleet), "        ");
  return kDone;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto [command, arguments] =
      add_subcommand(app, action, "status",
                     "Tell how a run is: its ranks and data servers, also while they hang", status);
  command
      .add_option("run", arguments.run,
                  "a run's folder, or one that holds runs: the newest of them is meant")
      ->required()
      ->type_name("RUN");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer status runs/maskrcnn-1", "trainer status runs",
                         "watch -n 5 trainer status runs/maskrcnn-1"});
}

}  // namespace millrace::cli
