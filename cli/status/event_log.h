// What the ranks of a run have done lately: asked of those that answer, read from the files of
// those that have failed (docs/status.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/status/run_status.h"

namespace millrace::cli {

/// Times are seconds since 1970, by the clock of the rank's host.
struct SeenEvent {
  std::string kind, name, detail;  // as millrace/base/events/event_ring.h has them
  std::int64_t number = -1, bytes = 0, thread = 0;
  double start_s = 0, seconds = 0;  // until it ended, or was written down
  bool goes_on = false;

  double end_s() const { return start_s + seconds; }
};

struct EventLog {
  std::int64_t rank = 0;
  std::string name;  // "rank 1 (node-b)"
  std::string from;  // "it was asked", a file; empty: there is no log
  std::string why;   // it was written; or there is none
  double written_s = 0;
  std::vector<SeenEvent> events = {};  // by start
};

/// Of the JSON that write_events writes. Throws Error naming `from` for other JSON.
EventLog read_event_log(const Json& json, std::string from);

struct EventLogs {
  std::filesystem::path run;
  std::vector<EventLog> ranks;  // of the run's newest start
  Json trace = Json::array();   // the events of all, as Chrome's traces have them
};

/// What ranks wrote because they failed, in the start of a run that has these ranks. The first one
/// first, since others often end because of it.
std::vector<EventLog> failure_logs(const std::filesystem::path& run,
                                   const std::vector<MemberStatus>& ranks);

/// Asks all ranks by a file in the folder, for `timeout` at most. Throws Error for a folder that is
/// no run, or whose ranks have written no status.
EventLogs collect_event_logs(const std::filesystem::path& run, std::chrono::milliseconds timeout);

/// An exchange of all ranks, and who kept the others waiting in it.
struct Lateness {
  std::string exchange;     // "agreement on the step"
  std::string of;           // "step 12"
  std::int64_t number = 0;  // the n-th of its name, from 0
  double end_s = 0;         // or, if it goes on, when that was written down
  bool goes_on = false;
  std::vector<std::int64_t> late;  // one, or those that have not come
  double seconds = 0;              // that the others have waited for it longer than it for them
  std::string doing = {};          // meanwhile: of the first of them
};

/// By end. Exchanges of which no rank is known to be late, and those before all logs begin, are
/// left out. Needs no clocks that agree: how long each rank waited tells who came last.
std::vector<Lateness> who_was_late(const std::vector<EventLog>& ranks);

/// As docs/status.md has it.
Json to_json(const EventLogs& logs);
std::string to_text(const EventLogs& logs);

}  // namespace millrace::cli
