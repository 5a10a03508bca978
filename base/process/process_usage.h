// Resource usage, free memory and age of this process, and the processor that it runs on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace millrace {

/// Returns the number after `key` in a file with lines "key value", or the first number of the file
/// if `key` is empty. nullopt if not found.
std::optional<double> read_number(const std::filesystem::path& file, const std::string& key = {});

/// Returns the name of the host's processor; "unknown" if the system does not report it.
std::string processor_name();

/// Returns the user and system time of all threads, in seconds.
double cpu_seconds();

/// Returns the resident memory; 0 = unknown.
std::int64_t rss_bytes();

/// Returns the peak resident memory.
std::int64_t peak_rss_bytes();

/// Returns the seconds since the process was started (before any library was loaded), to 10 ms; 0 =
/// unknown.
double process_age();

/// Returns the bytes that can be allocated before the system swaps, kills or refuses: MemAvailable,
/// or less if a control group (a container, a cluster job) or `ulimit -v` or `-d` limits this
/// process. nullopt if unknown.
std::optional<double> free_memory();

}  // namespace millrace
