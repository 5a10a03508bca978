// Detects stalls of a training.
#pragma once

#include <optional>
#include <string>

#include "millrace/trainer/activity.h"

namespace millrace {

/// Detects that a training has reported no progress for a time, on a steady clock. A process that
/// was suspended as a whole is not a stall. For one thread.
class StallWatch {
 public:
  explicit StallWatch(Clock::duration limit) : limit_(limit) {}

  /// Call several times per `limit`. Returns true once for each stall.
  bool sees(const Activity::Now& now, Clock::time_point at);

  /// Returns the length of a detected stall that has ended, once.
  std::optional<Clock::duration> ended(const Activity::Now& now);

 private:
  Clock::duration limit_;
  std::optional<Clock::time_point> looked_;   // time of the last call
  Clock::time_point awake_{};                 // start of the calls without a gap up to now
  std::optional<Clock::time_point> stalled_;  // last report of progress before the stall
};

/// Returns a description of a stall: the activity of the training thread and its start, the sample
/// and time of each stage at work, and the number of items waiting for each stage.
std::string stall_text(std::int64_t rank, const Activity& activity, Clock::time_point at);

}  // namespace millrace
