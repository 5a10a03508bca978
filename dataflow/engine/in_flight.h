// Limits the samples between source and consumer, and queues the items that are ready. Internal.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "millrace/dataflow/engine/item.h"

namespace millrace {

/// Issues one ticket per sample in flight, up to `most`. Fewer are issued if the samples in flight,
/// or the same number of the largest message seen, exceed `bytes` (0 = unlimited); `least` tickets
/// are always available, since a flow would hang with fewer. Thread-safe.
class Tickets {
 public:
  Tickets(std::int64_t least, std::int64_t most, std::int64_t bytes)
      : least_(least), most_(most), bytes_(bytes) {}

  /// Takes a ticket for a sample of `bytes` bytes; returns false if it must wait.
  bool take(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto sample = static_cast<std::int64_t>(bytes);
    is_full_ = bytes_ > 0 && out_ >= least_ && sample > bytes_ - held_;
    if (is_full_ || out_ >= allowed()) return false;
    ++out_;
    held_ += sample;
    return true;
  }

  void give_back(std::int64_t tickets, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    out_ -= tickets;
    held_ -= static_cast<std::int64_t>(bytes);
  }

  /// Records that samples change from `before` to `now` bytes. Returns true if a sample that was
  /// too large may fit now.
  bool settle(std::size_t before, std::size_t now) {
    if (before == now) return false;
    const std::lock_guard lock(mutex_);
    held_ += static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
    return is_full_ && now < before;
  }

  /// Records a message of `bytes` bytes per ticket.
  void record_size(std::size_t bytes) {
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
  std::int64_t held_ = 0;  // bytes of the samples in flight
  bool is_full_ = false;   // the latest request was too large
  std::atomic<std::int64_t> largest_ = 0;
};

/// A FIFO queue. The flow's tickets bound it, so a push never waits.
class ReadyQueue {
 public:
  void push(GroupPtr item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
  }

  /// Waits up to `timeout` for an item; returns true if there is one.
  bool wait_for(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return filled_.wait_for(lock, timeout, [this] { return !items_.empty(); });
  }

  /// Returns the first item. If the queue is empty, waits for one if `wait`, else returns nullptr.
  GroupPtr pop(bool wait) {
    std::unique_lock lock(mutex_);
    if (wait) filled_.wait(lock, [this] { return !items_.empty(); });
    if (items_.empty()) return nullptr;
    auto item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

 private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<GroupPtr> items_;
};

}  // namespace millrace
