// Reads the folder of a run that has finished, is training, or crashed.
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
enum class RecordedState {
  training,  // a process holds its lock
  done,      // all steps completed
  stopped,   // stopped by a signal, a target or a callback
  broken,    // the process ended without recording it: an error, a kill or a power failure
  unknown,   // written by an older version, without a record
};

/// The detections of an evaluation.
struct ResultsFile {
  std::string weights;  // callback that keeps these weights; empty = trained weights
  std::int64_t step = 0;
  std::filesystem::path file;
};

/// AP of each class at an evaluation, from `scores/`.
struct ClassScores {
  std::int64_t step = 0;
  std::map<std::int64_t, double> ap;  // by category id
};

struct RunFiles {
  std::filesystem::path folder;
  std::string name;                            // the folder's name, with parent folders if needed
                                               // to be unique
  Config config;                               // an empty table if config.toml is missing
  std::map<std::string, std::string> origins;  // sources of values by key; empty if not recorded
  nlohmann::ordered_json record;               // record.json; null = none
  MetricsLog metrics;
  std::vector<ResultsFile> results;                              // sorted by weights and step
  std::map<std::string, std::vector<ClassScores>> class_scores;  // "bbox" or "segm"; by step
  std::string limited;  // effect of the limit of detections on the score; empty = none
  RecordedState state = RecordedState::unknown;
  std::string state_text;            // a sentence without its full stop
  std::string log_end;               // last lines of log.txt, for a broken run
  std::vector<std::string> remarks;  // missing or unreadable parts, as sentences

  /// Returns the record of the last start; null if not found.
  const nlohmann::ordered_json& last_start() const;
  /// Returns the latest detections of the trained weights, otherwise of any weights; nullopt if
  /// not found.
  std::optional<ResultsFile> newest_results() const;
};

/// Reads a run folder. Throws Error if it has neither config.toml, record.json nor metrics.jsonl.
/// Other problems become remarks.
RunFiles read_run_files(const std::filesystem::path& folder);

/// Reads several run folders. Runs with the same folder name get longer parts of their paths as
/// names. Throws like read_run_files().
std::vector<RunFiles> read_runs(std::span<const std::filesystem::path> folders);

/// Returns the seconds of training until a wall-clock time, without the gaps between the starts of
/// a resumed run; 0 if not recorded.
double trained_seconds(const RunFiles& run, double time);

/// Returns the maximum memory over ranks and time; 0 if not recorded.
double peak_memory_mib(const RunFiles& run);

/// Returns true if a process is training in this run folder.
bool is_locked(const std::filesystem::path& run);

/// Returns a member; null if it does not exist or `object` is not an object.
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* key);
/// Returns a string member; empty if it does not exist.
std::string text_of(const nlohmann::ordered_json& object, const char* key);

}  // namespace millrace::report
