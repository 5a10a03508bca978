// How many samples a flow may have between source and consumer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace millrace {

/// A ticket a sample in flight. All of `most` are out while memory allows; where so many of the
/// largest messages seen would pass `bytes` (0: no bound), only as many as fit, yet never fewer
/// than `least`, with which a flow cannot hang. Thread-safe.
class Tickets {
 public:
  Tickets(std::int64_t least, std::int64_t most, std::int64_t bytes)
      : least_(least), most_(most), bytes_(bytes) {}

  /// Takes back `returned` tickets and says how many may go out now; those count as out from here
  /// on.
  std::int64_t exchange(std::int64_t returned) {
    const std::lock_guard lock(mutex_);
    out_ -= returned;
    const auto given = std::max<std::int64_t>(0, allowed() - out_);
    out_ += given;
    return given;
  }

  /// Takes back tickets that nobody needs now.
  void give_back(std::int64_t returned) {
    const std::lock_guard lock(mutex_);
    out_ -= returned;
  }

  /// A message of so many bytes a ticket has been seen.
  void saw(std::size_t bytes) {
    const auto seen = static_cast<std::int64_t>(bytes);
    auto largest = largest_.load(std::memory_order_relaxed);
    while (largest < seen && !largest_.compare_exchange_weak(largest, seen)) continue;
  }

 private:
  std::int64_t allowed() const {
    const auto largest = largest_.load(std::memory_order_relaxed);
    if (bytes_ == 0 || largest == 0) return most_;
    return std::clamp(bytes_ / largest, least_, most_);
  }

  const std::int64_t least_, most_, bytes_;
  std::mutex mutex_;
  std::int64_t out_ = 0;
  std::atomic<std::int64_t> largest_ = 0;
};

}  // namespace millrace
