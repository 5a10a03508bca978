// What the training thread is doing and since when, for whoever watches over it.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

namespace millrace {

/// One thread says what it does; any thread may ask.
class Activity {
 public:
  using Clock = std::chrono::steady_clock;

  struct Now {
    std::string what;         // "waits for data", "callback 'evaluate' in trigger"
    Clock::time_point since;  // when that began
  };

  void begin(std::string what) {
    const std::scoped_lock lock(mutex_);
    now_ = {std::move(what), Clock::now()};
  }

  Now now() const {
    const std::scoped_lock lock(mutex_);
    return now_;
  }

 private:
  mutable std::mutex mutex_;
  Now now_{"starts", Clock::now()};
};

}  // namespace millrace
