// trainer status: reports the state of a run, rank by rank, even while it hangs.
#include <chrono>

#include "millrace/cli/command.h"
#include "millrace/cli/status/event_log.h"
#include "millrace/cli/status/run_status.h"

namespace millrace::cli {
namespace {

constexpr std::chrono::seconds kServerTimeout{2}, kEventsTimeout{5};

struct StatusArguments {
  std::string run;
  bool json = false, events = false;
};

int show(const Json& json, const std::string& text, bool as_json) {
  if (as_json)
    print(json);
  else
    print_lines(text, "        ");
  return kDone;
}

bool is_endpoint(const std::string& name) {
  return name.starts_with("tcp://") || name.starts_with("ipc://");
}

int status_of_server(const std::string& endpoint, bool as_json) {
  const auto servers = ask_servers({endpoint}, {}, kServerTimeout);
  return show(to_json(servers.front()), table_of_servers(servers), as_json);
}

int status(const StatusArguments& arguments) {
  if (is_endpoint(arguments.run)) return status_of_server(arguments.run, arguments.json);
  const auto [run, also_training] = find_named_run(arguments.run);
  if (arguments.events) {
    const auto logs = collect_event_logs(run, kEventsTimeout);
    return show(to_json(logs), to_text(logs), arguments.json);
  }
  auto status = read_run_status(run, kServerTimeout);
  status.also_training = also_training;
  return show(to_json(status), to_text(status), arguments.json);
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto [command, arguments] = add_subcommand(app, action, "status", status);
  add_option(command, "run", arguments.run, "RUN",
             "run folder; or a folder of runs, for the newest running one, else the newest; or the "
             "endpoint of a data server without keys")
      ->required();
  command.add_flag("--events", arguments.events,
                   "show the last events of the ranks instead, and which ranks were late in their "
                   "exchanges; with --json also for ui.perfetto.dev");
  add_json_flag(command, arguments.json);
  add_examples(command,
               {"trainer status runs/maskrcnn-1", "trainer status runs",
                "trainer status runs/maskrcnn-1 --events", "trainer status tcp://127.0.0.1:5555",
                "watch -n 5 trainer status runs/maskrcnn-1"});
}

}  // namespace millrace::cli
