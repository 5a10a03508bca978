// Progress messages for work on many images.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include "millrace/base/log.h"

namespace millrace::cli {

/// Logs progress at most every ten seconds. To be called after each image; thread-safe.
class ImageProgress {
 public:
  ImageProgress(std::string what, std::size_t count) : what_(std::move(what)), count_(count) {}

  void operator()() {
    const auto done = ++done_;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    const auto now = std::chrono::steady_clock::now();
    if (!lock || now < next_) return;
    next_ = now + kPause;
    log_info("{}: {} of {} images", what_, done, count_);
  }

 private:
  static constexpr std::chrono::seconds kPause{10};
  std::string what_;
  std::size_t count_;
  std::atomic<std::size_t> done_ = 0;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now() + kPause;
};

}  // namespace millrace::cli
