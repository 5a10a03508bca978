// What this process has used so far, and how old it is.
#pragma once

#include <cstdint>

namespace millrace {

/// User and system time of all its threads.
double cpu_seconds();

/// The memory that is resident now; 0 where the system does not tell.
std::int64_t rss_bytes();

/// The most memory that was resident at any time.
std::int64_t peak_rss_bytes();

/// Seconds since the system started the process (before any library was loaded), to 10 ms; 0 where
/// it does not say.
double process_age();

}  // namespace millrace
