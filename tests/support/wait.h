// Waiting for what another thread or process does.
#pragma once

#include <chrono>
#include <thread>

namespace millrace::testing {

/// Whether `happened` comes to be true. The deadline is far: only a test that fails comes near it.
template <class Condition>
bool comes_to(Condition&& happened, std::chrono::seconds deadline = std::chrono::seconds(300)) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!happened()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace millrace::testing
