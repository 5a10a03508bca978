// RUN/status: the state of each rank of a run. Each rank rewrites its file every few seconds.
//
//   status/rank-1.json    {"format": 1, "start": 1, "rank": 1, "ranks": 2, ...}, see docs/runs.md
//   status/ask-events     a request: when its text changes, each rank writes its last events to
//   status/events-1.json  this file
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

/// Returns the newest status of rank `rank` in start number `start` of a run; null if the file does
/// not exist or cannot be read.
nlohmann::ordered_json read_status_file(const std::filesystem::path& run, std::int64_t start,
                                        std::int64_t rank);

/// Returns the newest statuses of all ranks of start number `start`, indexed by rank; empty if no
/// file exists. Files of other starts are ignored.
std::vector<nlohmann::ordered_json> read_status_files(const std::filesystem::path& run,
                                                      std::int64_t start);

/// Returns the seconds since 1970.
double wall_clock();

}  // namespace millrace
