// What this process has used so far and may still use, and how old it is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

/// The number after `key` in a file of lines "key value"; the file's first if `key` is empty.
std::optional<double> number_in(const std::filesystem::path& file, const std::string& key = {});

/// User and system time of all its threads.
double cpu_seconds();

/// Memory resident now; 0: unknown.
std::int64_t rss_bytes();

/// The most memory resident at any time.
std::int64_t peak_rss_bytes();

/// Seconds since the process was started (before any library was loaded), to 10 ms; 0: unknown.
double process_age();

/// Bytes that can be allocated before the system swaps, kills or refuses: MemAvailable, or less if
/// a control group (a container, a job of a cluster) or `ulimit -v` or `-d` bounds this process.
/// nullopt if unknown.
std::optional<double> free_memory();

}  // namespace millrace
