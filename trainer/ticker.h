// Periodic work on a separate thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "millrace/base/clock.h"

namespace millrace {

/// Calls `work` every `period` during its lifetime. `work` must not throw.
class Ticker {
 public:
  Ticker(Clock::duration period, std::function<void()> work)
      : thread_([this, period, work = std::move(work)](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, stop, period, [&] { return stop.stop_requested(); })) work();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last member, so that it is stopped first
};

}  // namespace millrace
