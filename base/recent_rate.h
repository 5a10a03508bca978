// A rate over the recent past.
#pragma once

#include <cstddef>
#include <deque>

#include "millrace/base/clock.h"

namespace millrace {

/// Measures the rate over the last 20 additions until now, so that it falls while nothing is added.
/// Not thread-safe.
class RecentRate {
 public:
  /// The first call only starts the measurement.
  void add(double amount, Clock::time_point now = Clock::now()) {
    added_.push_back({now, amount});
    if (added_.size() > kKept + 1) added_.pop_front();
  }

  double per_second(Clock::time_point now = Clock::now()) const {
    if (added_.size() < 2 || now <= added_.front().at) return 0;
    double sum = 0;
    for (std::size_t i = 1; i < added_.size(); ++i) sum += added_[i].amount;
    return sum / std::chrono::duration<double>(now - added_.front().at).count();
  }

 private:
  static constexpr std::size_t kKept = 20;
  struct Addition {
    Clock::time_point at;
    double amount = 0;
  };
  std::deque<Addition> added_;
};

}  // namespace millrace
