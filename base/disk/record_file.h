// The name of the file in a run's folder that records the run's inputs and its use of resources.
#pragma once

#include <filesystem>

namespace millrace {

inline constexpr auto kRecordFile = "record.json";
/// Name of the record in earlier versions.
inline constexpr auto kFormerRecordFile = "run.json";

/// Returns the record of a run's folder; empty if it has none.
inline std::filesystem::path record_file_in(const std::filesystem::path& run) {
  std::error_code unreadable;
  for (const auto* name : {kRecordFile, kFormerRecordFile})
    if (std::filesystem::exists(run / name, unreadable)) return run / name;
  return {};
}

}  // namespace millrace
