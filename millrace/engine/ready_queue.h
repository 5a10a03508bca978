// Where finished items wait for the consumer. Internal.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "millrace/engine/item.h"

namespace millrace {

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

  /// Whether there is an item, after waiting at most so long for it.
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
