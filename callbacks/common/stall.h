// Stalls of a training.
#pragma once

#include <optional>
#include <string>

#include "millrace/trainer/activity.h"

namespace millrace {

/// Notices that a training has given no sign of life for long, on a steady clock. A process that
/// was stopped as a whole is no stall. For one thread.
class StallWatch {
 public:
  explicit StallWatch(Clock::duration limit) : limit_(limit) {}

  /// Call several times per `limit`. True once for each stall.
  bool sees(const Activity::Now& now, Clock::time_point at);

  /// The length of a stall that was seen and has ended, once.
  std::optional<Clock::duration> ended(const Activity::Now& now);

 private:
  Clock::duration limit_;
  std::optional<Clock::time_point> looked_;   // the last call
  Clock::time_point awake_{};                 // since when calls have come without a gap
  std::optional<Clock::time_point> stalled_;  // the last sign of life before the stall
};

/// What the training thread does and since when; which stage works on what and for how long, and
/// how many items wait for each.
std::string stall_text(std::int64_t rank, const Activity& activity, Clock::time_point at);

}  // namespace millrace
