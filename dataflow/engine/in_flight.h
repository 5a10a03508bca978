// Between source and consumer: how many samples there may be, and the items that are ready.
// Internal.
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

/// One ticket per sample in flight. Up to `most` are out, and fewer if these samples, or as many of
/// the largest messages seen, exceed `bytes` (0 = unlimited); but at least `least`, with which a
/// flow cannot hang. Thread-safe.
class Tickets {
 public:
  Tickets(std::int64_t least, std::int64_t most, std::int64_t bytes)
      : least_(least), most_(most), bytes_(bytes) {}

  /// Takes a ticket for a sample of `bytes`. Returns whether it may go out now.
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

  /// The size of some samples changes. Returns whether one that was too large to go out may fit.
  bool settle(std::size_t before, std::size_t now) {
    if (before == now) return false;
    const std::lock_guard lock(mutex_);
    held_ += static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
    return is_full_ && now < before;
  }

  /// Records a message of `bytes` per ticket.
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
  std::int64_t held_ = 0;  // bytes of the samples that are out
  bool is_full_ = false;   // the last one asked for was too large
  std::atomic<std::int64_t> largest_ = 0;
};

/// First in, first out. Bounded by the flow's tickets, so a push never waits.
class ReadyQueue {
 public:
  void push(GroupPtr item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
  }

  /// Whether there is an item, after waiting up to `timeout` for it.
  bool wait_for(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    return filled_.wait_for(lock, timeout, [this] { return !items_.empty(); });
  }

  /// The first item; if there is none, nullptr, or `wait` for it.
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
