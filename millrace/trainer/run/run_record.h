// run.json of a run folder: its configuration, and what each start of it was made with.
//
//   {"format": 1, "name": "maskrcnn", "config_file": "/home/a/configs/maskrcnn.toml",
//    "starts": [{"time": ..., "from_step": 0, "command": [...], ...,
//                "memory_forecast_mib": {"present": 301, "step": 402, ..., "most": 780},
//                "ended": {"time": ..., "step": 500, "reason": "done",
//                          "peak_memory_mib": 812}},
//               {"time": ..., "from_step": 500, ...}]}
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "millrace/trainer/run/run_folder.h"
#include "millrace/trainer/trainer.h"

namespace millrace {

inline constexpr auto kRunRecord = "run.json";

struct RunRecord {
  std::string name;                   // of the configuration: its file's stem
  std::filesystem::path config_file;  // absolute
  nlohmann::ordered_json starts = nlohmann::ordered_json::array();

  /// The step at which the last start was done; nothing if it was stopped, failed or killed.
  std::optional<std::int64_t> done_after() const;
};

/// Of a run folder; nothing for one of an older version. Throws ConfigError if it cannot be read.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run);

/// One start of a run, in its record.
class RunStart {
 public:
  /// In a folder that is new or has the record of earlier starts. Throws ConfigError if that cannot
  /// be read.
  RunStart(const RunFolder& folder, const RunIdentity& mine);

  /// Whether the last start was done, at that step.
  bool was_done_after(std::int64_t step) const { return record_.done_after() == step; }

  /// Adds this start to the record. `program`: name and version; `ranks`: see rank_facts; `memory`:
  /// the forecast, null without one. Throws Error.
  void begin(std::int64_t from_step, const std::filesystem::path& config_file,
             const std::string& program, nlohmann::ordered_json ranks,
             nlohmann::ordered_json memory);

  /// Of this start, from 1, once it has begun.
  std::int64_t number() const { return static_cast<std::int64_t>(record_.starts.size()); }

  /// Adds how it ended; warns if that cannot be written.
  void end(const TrainEnd& end);

 private:
  void write() const;

  std::filesystem::path folder_;
  RunRecord record_;
};

}  // namespace millrace
