// run.json of a run folder: what the run belongs to, and what each start of it was made with.
//
//   {"format": 1, "name": "maskrcnn", "config_file": "/home/a/configs/maskrcnn.toml",
//    "starts": [{"time": ..., "from_step": 0, "command": [...], ...,
//                "ended": {"time": ..., "step": 500, "reason": "done"}},
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

  /// The step after which the last start was done with all that the configuration asked for;
  /// nothing where it was not: stopped, failed, killed.
  std::optional<std::int64_t> done_after() const;
};

/// Of a run folder; nothing where it has none (an older version made it). Throws ConfigError where
/// it cannot be read.
std::optional<RunRecord> read_run_record(const std::filesystem::path& run);

/// One start of a run, as the run's record tells of it.
class RunStart {
 public:
  /// In a folder that is new, or has the record of earlier starts. Throws ConfigError where that
  /// cannot be read.
  RunStart(const RunFolder& folder, const RunIdentity& mine);

  /// Whether the last start was done after that step, with all that it was to do.
  bool was_done_after(std::int64_t step) const { return record_.done_after() == step; }

  /// Adds this start to the record, with what it is made with (see run_facts.h). `program`: its
  /// name and version; `ranks`: of rank_facts. Throws Error.
  void begin(std::int64_t from_step, const std::filesystem::path& config_file,
             const std::string& program, nlohmann::ordered_json ranks);

  /// Adds how it ended. That it cannot be written is a warning: what was trained is saved.
  void end(const TrainEnd& end);

 private:
  void write() const;

  std::filesystem::path folder_;
  RunRecord record_;
};

}  // namespace millrace
