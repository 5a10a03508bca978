// record.json of a run folder: what the run was made with, what it took, and what it reached. Its
// configuration lies beside it, in config.toml and origins.json. docs/record.md has all keys.
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
  std::string name;                   // of the configuration: its file's stem
  std::filesystem::path config_file;  // absolute
  nlohmann::ordered_json targets = nlohmann::ordered_json::array();
  nlohmann::ordered_json evaluations = nlohmann::ordered_json::array();
  nlohmann::ordered_json starts = nlohmann::ordered_json::array();

  /// The step at which the last start ended for this reason; nothing if it did not.
  std::optional<std::int64_t> ended_after(std::string_view reason) const;

  /// The step at which the last start was done; nothing if it was stopped, failed or killed.
  std::optional<std::int64_t> done_after() const;

  /// The last start; null without one.
  nlohmann::ordered_json last() const {
    return starts.empty() ? nlohmann::ordered_json() : starts.back();
  }

  /// Resources summed over the starts that recorded them; nullopt if none did.
  std::optional<RunUse> used() const;
};

/// Of a run folder, also of an earlier version; nothing without one. Throws ConfigError if it
/// cannot be read.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run);

/// One start of a run, in its record.
class RunStart {
 public:
  /// In a folder that is new or has the record of earlier starts. Throws ConfigError if that cannot
  /// be read.
  RunStart(const RunFolder& folder, const RunIdentity& mine);

  const RunRecord& record() const { return record_; }

  /// Adds this start to the record. `program`: name and version; `more`: other facts of it, such as
  /// rank_facts. What was reached after `from_step` is forgotten, since it is trained again.
  /// `targets`: scores by name. Throws Error.
  void begin(std::int64_t from_step, const std::filesystem::path& config_file,
             const std::string& program, const nlohmann::ordered_json& more,
             const std::map<std::string, double>& targets);

  /// Of this start, from 1, once it has begun.
  std::int64_t number() const { return static_cast<std::int64_t>(record_.starts.size()); }

  const std::filesystem::path& folder() const { return folder_; }

  /// Keeps what it has used until a step. Warns if that cannot be written, as the next two.
  void used(std::int64_t step, const RunUse& use);

  /// Keeps scores that became known when so much had been used.
  void reached(const Moment& of, const Scalars& scores, std::int64_t step, const RunUse& use);

  /// Keeps how it ended.
  void end(const TrainEnd& end, const RunUse& use);

 private:
  void set_used(std::int64_t step, const RunUse& use);
  void write() const;
  void write_or_warn() const;

  std::filesystem::path folder_;
  RunRecord record_;
};

}  // namespace millrace
