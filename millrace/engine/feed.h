// Which groups of a plan a flow makes: all in order, or those that are asked for. Internal.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <stdexcept>

namespace millrace {

/// The numbers of the groups to make, and what the consumer wants to hear of them.
class Feed {
 public:
  virtual ~Feed() = default;
  /// The next number; nothing where none is wanted now.
  virtual std::optional<std::int64_t> next() = 0;
  /// Tells that the plan ends or fails before the number that `next` has given last. One thread
  /// calls both.
  virtual void end() = 0;
  /// Wants a number, from any thread. REQUIRES: a feed by number.
  virtual void ask(std::int64_t number) = 0;
  /// Whether each number has an answer, also where all samples of its group were lost.
  virtual bool answers_all() const = 0;
};

/// 0, 1, 2, ... until the plan ends.
class FeedInOrder final : public Feed {
 public:
  std::optional<std::int64_t> next() override {
    return ended_ ? std::nullopt : std::optional(next_++);
  }
  void end() override { ended_ = true; }
  void ask(std::int64_t) override { throw std::logic_error("this flow gives its items in order"); }
  bool answers_all() const override { return false; }

 private:
  std::int64_t next_ = 0;
  bool ended_ = false;
};

/// What was asked for, in the order of asking.
class FeedByNumber final : public Feed {
 public:
  std::optional<std::int64_t> next() override {
    const std::lock_guard lock(mutex_);
    if (asked_.empty()) return std::nullopt;
    const auto number = asked_.front();
    asked_.pop_front();
    return number;
  }
  void end() override {}
  void ask(std::int64_t number) override {
    const std::lock_guard lock(mutex_);
    asked_.push_back(number);
  }
  bool answers_all() const override { return true; }

 private:
  std::mutex mutex_;
  std::deque<std::int64_t> asked_;
};

}  // namespace millrace
