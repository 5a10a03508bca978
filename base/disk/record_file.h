// The file in which a run's folder says what the run was made with and what it took.
#pragma once

#include <filesystem>

namespace millrace {

inline constexpr auto kRecordFile = "record.json";
/// What earlier versions called it.
inline constexpr auto kFormerRecordFile = "run.json";

/// The record of a run's folder; empty: there is none.
inline std::filesystem::path record_file_in(const std::filesystem::path& run) {
  std::error_code unreadable;
  for (const auto* name : {kRecordFile, kFormerRecordFile})
    if (std::filesystem::exists(run / name, unreadable)) return run / name;
  return {};
}

}  // namespace millrace
