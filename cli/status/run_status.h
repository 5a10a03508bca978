// A run's status for `trainer status`, from files in its folder and the answers of its data
// servers.
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
  starting,  // its folder is locked, but no rank has written a status yet
  training,
  silent,   // no rank writes its status, but a process of the run may exist
  done,     // all steps were done
  stopped,  // ended by a signal, a target or a callback
  broken,   // ended without recording it: an error, a kill, a power failure
  unknown,  // run of an older version
};
std::string name_of(RunState state);

inline constexpr double kLongS = 2;  // shorter durations are not shown

/// A rank or a data server.
struct MemberStatus {
  std::string name;          // "rank 2", or a server's endpoint
  std::string host = {};     // of a rank
  std::int64_t process = 0;  // only for a rank
  bool answers = false;      // for a rank: it writes its status
  std::string why = {};      // why it does not answer; empty if it has ended or was not asked
  double age_s = -1;         // age of `status`, seconds; negative = never received
  Json status = {};          // the latest; null if not found

  /// Returns "rank 2 (b)"; only for a rank.
  std::string with_host() const { return name + " (" + host + ")"; }
};

struct RunStatus {
  std::filesystem::path run;
  RunState state = RunState::unknown;
  std::string standing;  // the run folder's state in words
  std::string log_end;   // only of a broken run
  std::string failure;   // of a broken run: "rank 3 (b): SIGSEGV"; empty if not known
  double timeout_s = 0;
  std::vector<MemberStatus> ranks = {}, servers = {};
  std::vector<std::filesystem::path> also_training = {};  // in the same folder of runs
};

struct NamedRun {
  std::filesystem::path run;
  std::vector<std::filesystem::path> also_training;  // newest first
};

/// Returns the run for a folder: the folder itself if it is a run; for a folder of runs, the run
/// that was started last, among those in training if there are any; the folder itself if it
/// contains no run.
NamedRun find_named_run(const std::filesystem::path& folder);

/// Returns the status files of the ranks of a run's latest start; empty if not found. Throws
/// Error if the folder is not a run.
std::vector<Json> newest_status_files(const std::filesystem::path& run);

/// Returns a rank's status from its status file; null = no file was written.
MemberStatus rank_of(const Json& file, std::size_t number);

/// The state of a rank, from its status file and, if the rank is on this machine, its process.
enum class RankState {
  writes,
  silent,  // has not written for three of its periods, or is on another machine
  gone,
};
RankState rank_state(const Json& file);

/// Requests the status of data servers; waits up to `timeout`.
std::vector<MemberStatus> ask_servers(const std::vector<std::string>& endpoints,
                                      const std::optional<serving::LinkKeys>& keys,
                                      std::chrono::milliseconds timeout);

/// Reads the run's files, repeatedly for up to three of their periods if a rank may be silent, and
/// requests the status of the data servers meanwhile. Throws Error if the folder is not a run.
RunStatus read_run_status(const std::filesystem::path& run, std::chrono::milliseconds timeout);

/// Returns one sentence, without a full stop, on the state of the run and the rank that the others
/// wait for.
std::string verdict(const RunStatus& run);

/// Returns the JSON that docs/runs.md describes.
Json to_json(const RunStatus& run);
Json to_json(const MemberStatus& member);

/// Returns a table of ranks, a table of data servers and the verdict, in 80 columns except for file
/// names.
std::string to_text(const RunStatus& run);
std::string table_of_servers(const std::vector<MemberStatus>& servers);

}  // namespace millrace::cli
