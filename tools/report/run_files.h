// The files of a run's folder: of a finished run, one that is training, or one that crashed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/base/config.h"
#include "millrace/tools/report/metrics_log.h"

namespace millrace::report {

/// The state of a run.
enum class Standing {
  training,  // a process holds its lock
  done,      // all of its steps
  stopped,   // by a signal, a target, a callback
  broken,    // its process ended without a record of it: an error, a kill, a power failure
  unknown,   // of an older version, without a record
};

/// Detections of an evaluation.
struct ResultsFile {
  std::string weights;  // "": the trained ones; else the callback that keeps others
  std::int64_t step = 0;
  std::filesystem::path file;
};

/// AP of each class at an evaluation, as `scores/` has it.
struct ClassScores {
  std::int64_t step = 0;
  std::map<std::int64_t, double> ap;  // by category id
};

struct RunFiles {
  std::filesystem::path folder;
  std::string name;                            // of the folder, unless another is given
  Config config;                               // an empty table without config.toml
  std::map<std::string, std::string> origins;  // of the values, by key; empty: not recorded
  nlohmann::ordered_json record;               // record.json; null: none
  MetricsLog metrics;
  std::vector<ResultsFile> results;                              // by weights and step
  std::map<std::string, std::vector<ClassScores>> class_scores;  // by "bbox", "segm"; by step
  std::string limited;  // the cost of the limit of detections; empty = none
  Standing standing = Standing::unknown;
  std::string standing_text;         // a sentence without its full stop
  std::string log_end;               // of a broken run: the last lines of log.txt
  std::vector<std::string> remarks;  // what is missing or cannot be read: sentences

  /// Of the last start; null if there is none.
  const nlohmann::ordered_json& last_start() const;
  /// The latest detections of the trained weights; else of any; nullopt if there are none.
  std::optional<ResultsFile> newest_results() const;
};

/// Reads a run folder. Throws Error if it is not one: neither config.toml nor record.json nor
/// metrics.jsonl is there. All else that is wrong becomes a remark.
RunFiles read_run_files(const std::filesystem::path& folder);

/// Reads several, and names those that share a folder's name by more of their paths. Throws as
/// that.
std::vector<RunFiles> read_runs(std::span<const std::filesystem::path> folders);

/// Seconds of training until a wall-clock time: those between the starts of a resumed run do not
/// count. 0 if not recorded.
double trained_seconds(const RunFiles& run, double time);

/// The maximum over ranks and time; 0 if not recorded.
double peak_memory_mib(const RunFiles& run);

/// Whether a process trains in the folder of this run.
bool is_locked(const std::filesystem::path& run);

/// A member; null if there is none, or `object` is not an object.
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* key);
/// A string member, or "".
std::string text_of(const nlohmann::ordered_json& object, const char* key);

}  // namespace millrace::report
