// record.json of a run folder: settings, used resources and scores of the run. The configuration is
// in config.toml and origins.json beside it. docs/runs.md documents all keys.
//
//   {"format": 1, "name": "maskrcnn", "config_file": "/home/a/configs/maskrcnn.toml",
//    "used": {"wall_s": 61.2, "cpu_s": 118.4, "parts": {"data": {"wall_s": 1.2, ...}, ...}, ...},
//    "targets": [{"score": "bbox/AP", "target": 0.3, "step": 400, "wall_s": 48.8, ...}],
//    "evaluations": [{"step": 200, "epoch": 1.0, "wall_s": 25.1, ..., "bbox/AP": 0.21}, ...],
//    "starts": [{"time": ..., "from_step": 0, "command": [...], ...,
//                "used": {"step": 500, "wall_s": 30.4, ...},
//                "ended": {"time": ..., "step": 500, "reason": "done"}},
//               {"time": ..., "from_step": 500, ...}]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "millrace/trainer/run/run_folder.h"
#include "millrace/trainer/run/run_use.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

struct RunRecord {
  std::string name;                   // stem of the configuration file
  std::filesystem::path config_file;  // absolute path
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  nlohmann::ordered_json evaluations = nlohmann::ordered_json::array();
  nlohmann::ordered_json starts = nlohmann::ordered_json::array();

  /// Returns the step at which the last start ended for this reason; nullopt if it ended
  /// differently.
  std::optional<std::int64_t> ended_after(std::string_view reason) const;

  /// Returns the step at which the last start was done; nullopt if it was stopped, failed or
  /// killed.
  std::optional<std::int64_t> done_after() const;

  /// Returns the last start; null if not found.
  nlohmann::ordered_json last() const {
    return starts.empty() ? nlohmann::ordered_json() : starts.back();
  }

  /// Resources summed over the starts that recorded them; nullopt if none did.
  std::optional<RunUse> used() const;
};

/// Reads the record of a run folder, including those of earlier versions; nullopt if not found.
/// Throws ConfigError if it cannot be read.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run);

/// One start of a run, in the run's record.
class RunStart {
 public:
  /// `folder`: a new folder, or one with the record of earlier starts. Throws ConfigError if that
  /// record cannot be read.
  RunStart(const RunFolder& folder, const RunIdentity& mine);

  const RunRecord& record() const { return record_; }

  /// Adds this start to the record. `program`: name and version. `more`: other facts, such as
  /// rank_facts. `targets`: scores by name. Removes scores recorded after `from_step`, since these
  /// steps are trained again. Throws Error.
  void begin(std::int64_t from_step, const std::filesystem::path& config_file,
             const std::string& program, const nlohmann::ordered_json& more,
             const std::map<std::string, double>& targets);

  /// Number of this start, from 1; valid after begin().
  std::int64_t number() const { return static_cast<std::int64_t>(record_.starts.size()); }

  const std::filesystem::path& folder() const { return folder_; }

  /// Records the resources used up to a step. This and the next two functions only warn if the
  /// record cannot be written.
  void used(std::int64_t step, const RunUse& use);

  /// Records scores with the resources that had been used when they became known.
  void reached(const Moment& of, const Scalars& scores, std::int64_t step, const RunUse& use);

  /// Records the end of the start.
  void end(const TrainEnd& end, const RunUse& use);

 private:
  void set_used(std::int64_t step, const RunUse& use);
  void write() const;
  void write_or_warn() const;

  std::filesystem::path folder_;
  RunRecord record_;
};

}  // namespace millrace
