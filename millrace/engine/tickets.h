// How many samples a flow may have between source and consumer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace millrace {

/// One ticket per sample in flight. `most` are out, unless so many of the largest messages seen
/// exceed `bytes` (0: no bound); then as many as fit, but at least `least`, with which a flow
/// cannot hang. Thread-safe.
class Tickets {
 public:
  Tickets(std::int64_t least, std::int64_t most, std::int64_t bytes)
      : least_(least), most_(most), bytes_(bytes) {}

  /// Takes all tickets that may go out now.
  std::int64_t take() {
    const std::lock_guard lock(mutex_);
    const auto taken = std::max<std::int64_t>(0, allowed() - out_);
    out_ += taken;
    return taken;
  }

  void give_back(std::int64_t tickets) {
    const std::lock_guard lock(mutex_);
    out_ -= tickets;
  }

  /// A message with so many bytes per ticket was seen.
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
