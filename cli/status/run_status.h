// A run as `trainer status` shows it: what its folder says, and what its data servers answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "millrace/cli/command.h"
#include "millrace/dataflow/serving/keys.h"

namespace millrace::cli {

enum class RunState {
  starting,  // its folder is locked, and no rank has written its status yet
  training,
  silent,   // no rank writes its status, but some process of the run may exist
  done,     // all of its steps
  stopped,  // by a signal, a target, a callback
  broken,   // it ended without a record of it: an error, a kill, a power failure
  unknown,  // of an older version
};
std::string name_of(RunState state);

inline constexpr double kLongS = 2;  // what takes longer is shown

/// A rank or a data server.
struct MemberStatus {
  std::string name;          // "rank 2", or a server's endpoint
  std::string host = {};     // of a rank
  std::int64_t process = 0;  // of a rank
  bool answers = false;      // a rank: it writes its status
  std::string why = {};      // it does not answer; empty: it has ended, or was not asked
  double heard_s = -1;       // seconds since `status`; below 0: never
  Json status = {};          // the last; null if there is none

  /// "rank 2 (b)", of a rank.
  std::string with_host() const { return name + " (" + host + ")"; }
};

struct RunStatus {
  std::filesystem::path run;
  RunState state = RunState::unknown;
  std::string standing;  // of the run, in words, as its folder has it
  std::string log_end;   // of a broken run
  std::string failure;   // "rank 3 (b): SIGSEGV", of a broken run whose rank could write it down
  double patience_s = 0;
  std::vector<MemberStatus> ranks = {}, servers = {};
  std::vector<std::filesystem::path> also_training = {};  // in the folder that was named
};

struct NamedRun {
  std::filesystem::path run;
  std::vector<std::filesystem::path> also_training;  // newest first
};

/// The run that a run's folder, or a folder of runs, stands for: of those that train, else of all,
/// the one that was started last; `folder` itself if it has none.
NamedRun find_named_run(const std::filesystem::path& folder);

/// The status files of the ranks of a run's last start; empty if there are none. Throws Error for a
/// folder that is no run.
std::vector<Json> newest_status_files(const std::filesystem::path& run);

/// A rank by its status file; null: it has written none.
MemberStatus rank_of(const Json& file, std::size_t number);

/// How a rank is, by its status file and, if it belongs to this machine, its process.
enum class Life {
  writes,
  silent,  // it has not written for three of its periods, or belongs to another machine
  gone,
};
Life life_of(const Json& file);

/// Asks data servers, for `timeout` at most.
std::vector<MemberStatus> ask_servers(const std::vector<std::string>& endpoints,
                                      const std::optional<serving::LinkKeys>& keys,
                                      std::chrono::milliseconds timeout);

/// Reads the run's files, and again for up to three of their periods if some rank may be silent.
/// Asks the data servers meanwhile. Throws Error for a folder that is no run.
RunStatus look_at_run(const std::filesystem::path& run, std::chrono::milliseconds timeout);

/// In one sentence, without its full stop: how the run is, and which rank the others wait for.
std::string verdict(const RunStatus& run);

/// As docs/status.md has it.
Json to_json(const RunStatus& run);
Json to_json(const MemberStatus& member);

/// A table of the ranks and one of the data servers, then the verdict; 80 columns, except for names
/// of files.
std::string to_text(const RunStatus& run);
std::string table_of_servers(const std::vector<MemberStatus>& servers);

}  // namespace millrace::cli
