// What this process has used so far.
#pragma once

#include <cstdint>

namespace millrace::cli {

/// User and system time of all its threads.
double cpu_seconds();

/// The most memory that was resident at any time.
std::int64_t peak_rss_bytes();

}  // namespace millrace::cli
