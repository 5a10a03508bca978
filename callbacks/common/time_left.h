// Estimates the remaining time of a training.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace {

/// An exponential moving average whose first values have equal weights.
class RecentMean {
 public:
  void add(double value) {
    count_ += 1;
    mean_ += (value - mean_) * std::max(kNewest, 1.0 / static_cast<double>(count_));
  }
  double value() const { return mean_; }

 private:
  static constexpr double kNewest = 0.05;
  double mean_ = 0;
  std::int64_t count_ = 0;
};

/// Estimates the time of steps from recent ones, since it drifts, and the time between steps, which
/// is mostly evaluations, from all.
class TimeLeft {
 public:
  void add(double step_s, double before_s) {
    step_s_.add(step_s);
    between_s_ += before_s;
    steps_ += 1;
  }

  /// Recent seconds per step.
  double step_s() const { return step_s_.value(); }

  /// Returns the estimated time of `steps` steps and of the time between them.
  double seconds(std::int64_t steps) const {
    if (steps_ == 0) return 0;
    return static_cast<double>(steps) *
           (step_s_.value() + between_s_ / static_cast<double>(steps_));
  }

 private:
  RecentMean step_s_;
  double between_s_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace millrace
