// Recent events of a run's ranks: requested from ranks that respond, read from files of ranks that
// failed (docs/runs.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/cli/status/run_status.h"

namespace millrace::cli {

/// An event as a rank reported it. Times are in seconds since 1970 by the clock of the rank's host.
struct RankEvent {
  std::string kind, name, detail;  // see base/events/event_ring.h
  std::int64_t number = -1, bytes = 0, thread = 0;
  double start_s = 0, seconds = 0;  // until its end, or until it was recorded
  bool goes_on = false;

  double end_s() const { return start_s + seconds; }
};

struct EventLog {
  std::int64_t rank = 0;
  std::string name;  // "rank 1 (node-b)"
  std::string from;  // "on request", or a file; empty = no log
  std::string why;   // why it was written, or why it is missing
  double written_s = 0;
  std::vector<RankEvent> events = {};  // by start time
};

/// Parses the JSON that write_events writes. Throws Error that gives `from` if the JSON is invalid.
EventLog read_event_log(const Json& json, std::string from);

struct EventLogs {
  std::filesystem::path run;
  std::vector<EventLog> ranks;  // of the run's latest start
  Json trace = Json::array();   // events of all ranks in Chrome's trace format
};

/// Returns the logs that ranks wrote because they failed, in the start of the run that has these
/// ranks. The first to fail comes first, because others often end because of it.
std::vector<EventLog> failure_logs(const std::filesystem::path& run,
                                   const std::vector<MemberStatus>& ranks);

/// Requests the events of all ranks through a file in the run folder and waits up to `timeout`.
/// Throws Error if the folder is not a run, or if no rank has written its status.
EventLogs collect_event_logs(const std::filesystem::path& run, std::chrono::milliseconds timeout);

/// An exchange between all ranks, and the ranks that made the others wait.
struct LateExchange {
  std::string exchange;     // "agreement on the step"
  std::string of;           // "step 12"
  std::int64_t number = 0;  // index among exchanges of its name, from 0
  double end_s = 0;         // when it ended or, if it goes on, was recorded
  bool goes_on = false;
  std::vector<std::int64_t> late;  // the last rank, or all that have not arrived
  double seconds = 0;              // how much longer the first rank waited than the late one
  std::string doing = {};          // what the first of `late` did meanwhile
};

/// Returns late exchanges by their end. Exchanges without a known late rank, and those before the
/// begin of any log, are left out. The clocks of hosts need not agree: the last to arrive is the
/// rank that waited least.
std::vector<LateExchange> late_exchanges(const std::vector<EventLog>& ranks);

/// Returns the JSON that docs/runs.md describes.
Json to_json(const EventLogs& logs);
std::string to_text(const EventLogs& logs);

}  // namespace millrace::cli
