// Where finished items wait for the consumer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "millrace/engine/item.h"

namespace millrace {

/// First in, first out. Bounded by the flow's tickets, so that nobody ever waits to push.
class ReadyQueue {
 public:
  void push(GroupPtr item) {
    {
      const std::lock_guard lock(mutex_);
      items_.push_back(std::move(item));
    }
    filled_.notify_one();
  }

  /// Waits for an item, so long at most; whether there is one.
  bool wait_for(std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    return filled_.wait_for(lock, most, [this] { return !items_.empty(); });
  }

  /// An item, nullptr where there is none.
  GroupPtr try_pop() {
    const std::lock_guard lock(mutex_);
    return items_.empty() ? nullptr : take_first();
  }

  /// Waits for an item.
  GroupPtr pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !items_.empty(); });
    return take_first();
  }

 private:
  GroupPtr take_first() {
    auto item = std::move(items_.front());
    items_.pop_front();
    return item;
  }

  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<GroupPtr> items_;
};

}  // namespace millrace
