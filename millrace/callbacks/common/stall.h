// When a training stands still, and what is to be said of it.
#pragma once

#include <optional>
#include <string>

#include "millrace/trainer/activity.h"

namespace millrace {

/// Notices that a training has given no sign of life for long. By the steady clock alone: whatever
/// happens to the calendar's clock is no stall. Nor is a process that was stopped as a whole. For
/// one thread.
class StallWatch {
 public:
  using Clock = Activity::Clock;

  /// `limit`: that long without a sign of life is a stall.
  explicit StallWatch(Clock::duration limit) : limit_(limit) {}

  /// To be asked several times in `limit`. True once for each stall.
  bool sees(const Activity::Now& now, Clock::time_point at);

  /// The length of a stall that was seen and has ended since; told once.
  std::optional<Clock::duration> ended(const Activity::Now& now);

 private:
  Clock::duration limit_;
  std::optional<Clock::time_point> looked_;   // when it was asked last
  Clock::time_point awake_{};                 // since when somebody has looked without a gap
  std::optional<Clock::time_point> stalled_;  // the last sign of life before the stall
};

/// What the training thread does and since when, and what its data do: which stage works on what
/// and for how long, and how many items stand in front of each.
std::string stall_text(std::int64_t rank, const Activity& activity, Activity::Clock::time_point at);

}  // namespace millrace
