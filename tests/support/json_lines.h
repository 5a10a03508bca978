// Reads the JSON Lines files that a training run writes: metrics.jsonl, edits.jsonl.
#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace millrace::testing {

inline std::vector<nlohmann::json> json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// Returns a run's metrics as JSON Lines, without the times, which depend on the machine.
inline std::string metrics_without_times(const std::filesystem::path& file) {
  std::string text;
  for (auto line : json_lines(file)) {
    for (auto member = line.begin(); member != line.end();)
      member = member.key().starts_with("time") ? line.erase(member) : std::next(member);
    text += line.dump() + "\n";
  }
  return text;
}

}  // namespace millrace::testing
