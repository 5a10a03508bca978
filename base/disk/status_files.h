// RUN/status: how each rank of a run is, in a file that the rank replaces every few seconds.
//
//   status/rank-1.json   {"format": 1, "start": 1, "rank": 1, "ranks": 2, ...}: docs/status.md
//   status/ask-events    a text: each rank answers another one than before with its last events in
//   status/events-1.json
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

namespace millrace {

inline constexpr int kStatusFormat = 1;

std::filesystem::path status_folder(const std::filesystem::path& run);
std::filesystem::path status_file(const std::filesystem::path& run, std::int64_t rank);
std::filesystem::path asked_events_file(const std::filesystem::path& run, std::int64_t rank);
std::filesystem::path ask_events_file(const std::filesystem::path& run);

/// The newest status of rank `rank` in start number `start` of a run; null if the file does not
/// exist or cannot be read.
nlohmann::ordered_json read_status_file(const std::filesystem::path& run, std::int64_t start,
                                        std::int64_t rank);

/// The newest statuses of all ranks of that start, by rank; empty if no file exists. Files that
/// other starts left are ignored.
std::vector<nlohmann::ordered_json> read_status_files(const std::filesystem::path& run,
                                                      std::int64_t start);

/// Seconds since 1970.
double wall_clock();

}  // namespace millrace
