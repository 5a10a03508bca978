// run.json of a run folder: what the run belongs to, and what each start of it was made with.
//
//   {"format": 1, "name": "maskrcnn", "config_file": "/home/a/configs/maskrcnn.toml",
//    "starts": [{"time": ..., "from_step": 0, "command": [...], ...,
//                "ended": {"time": ..., "step": 500, "reason": "done"}},
//               {"time": ..., "from_step": 500, ...}]}
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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

/// Throws Error.
void write_run_record(const std::filesystem::path& run, const RunRecord& record);

/// The time as 2026-01-31T23:59:59Z.
std::string time_text();

}  // namespace millrace
