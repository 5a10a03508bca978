// Waits for another thread or process.
#pragma once

#include <chrono>
#include <thread>

namespace millrace::testing {

/// Waits until `happened` returns true; returns false after the deadline. The deadline is long,
/// because only a failing test reaches it.
template <class Condition>
bool wait_until(Condition&& happened, std::chrono::seconds deadline = std::chrono::seconds(300)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!happened()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace millrace::testing
