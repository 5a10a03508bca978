// A run as `trainer status` sees it: what its folder says, and what its ranks and data servers
// answer.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/trainer/status/fleet_file.h"

namespace millrace::cli {

enum class RunState {
  starting,  // its folder is locked, and nothing answers yet
  training,
  silent,   // its folder is locked, or its host is another, and no rank answers
  done,     // all of its steps
  stopped,  // by a signal, a target, a callback
  broken,   // it ended without a record of it: an error, a kill, a power failure
  unknown,  // of an older version
};
std::string name_of(RunState state);

inline constexpr double kLongS = 2;  // what takes longer is told

/// A rank or a data server. `status` of `member` is its answer, else what it said last.
struct MemberView {
  FleetMember member;
  bool answers = false;
  std::string why = {};  // it does not answer; empty: it was not asked
  double heard_s = -1;   // ago; below 0: never
};

struct FleetView {
  std::filesystem::path run;
  RunState state = RunState::unknown;
  std::string standing;  // of the run, in words, as its folder has it
  std::string log_end;   // of a broken run
  std::string failure;   // "rank 3 (b): SIGSEGV", of a broken run whose rank could write it down
  double patience_s = 0;
  std::vector<MemberView> ranks = {}, servers = {};
  std::vector<std::filesystem::path> also_training = {};  // in the folder that was named
};

struct NamedRun {
  std::filesystem::path run;
  std::vector<std::filesystem::path> also_training;  // newest first
};

/// The run that a run's folder, or a folder of runs, stands for: of those that train, else of all,
/// the one that was started last; `folder` itself if it has none.
NamedRun find_named_run(const std::filesystem::path& folder);

/// Asks all at the same time, for so long at most. Throws Error for a folder that is no run.
FleetView look_at_fleet(const std::filesystem::path& run, std::chrono::milliseconds patience);

/// In one sentence, without its full stop: how the run is, and who keeps the others waiting.
std::string verdict(const FleetView& fleet);

/// As docs/status.md has it.
Json to_json(const FleetView& fleet);

/// A table of the ranks and one of the data servers, then the verdict; 80 columns, except for names
/// of files.
std::string to_text(const FleetView& fleet);

}  // namespace millrace::cli
