// Elapsed time from a monotonic clock.
#pragma once

#include <chrono>

namespace millrace {

using Clock = std::chrono::steady_clock;

/// Returns the seconds from `start` until now.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace millrace
