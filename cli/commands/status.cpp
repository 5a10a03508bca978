// trainer status: how a run is, rank by rank, also while it hangs.
#include <chrono>
#include <filesystem>

#include "millrace/cli/command.h"
#include "millrace/cli/status/event_log.h"
#include "millrace/cli/status/fleet_view.h"
#include "millrace/cli/terminal_text.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kPatience{2};

struct StatusArguments {
  std::filesystem::path run;
  bool json = false, events = false;
};

template <class View>
int show(const View& view, bool as_json) {
  if (as_json)
    print(to_json(view));
  else
    print_lines(to_text(view), "        ");
  return kDone;
}

int status(const StatusArguments& arguments) {
  const auto [run, also_training] = find_named_run(arguments.run);
  if (arguments.events) return show(collect_event_logs(run, kPatience), arguments.json);
  auto fleet = look_at_fleet(run, kPatience);
  fleet.also_training = also_training;
  return show(fleet, arguments.json);
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "status", status);
  command
      .add_option("run", arguments.run,
                  "a run's folder, or one that holds runs: the newest that trains, else the newest")
      ->required()
      ->type_name("RUN");
  command.add_flag("--events", arguments.events,
                   "tell instead what the ranks did last, and which came late to their exchanges; "
                   "with --json for ui.perfetto.dev, too");
  add_json_flag(command, arguments.json);
  add_examples(command, {"trainer status runs/maskrcnn-1", "trainer status runs",
                         "trainer status runs/maskrcnn-1 --events",
                         "watch -n 5 trainer status runs/maskrcnn-1"});
}

}  // namespace millrace::cli
