// A timed scope of the training thread, which updates all records of time.
#pragma once

#include <string>

#include "millrace/base/clock.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// Marks a phase of the training until the end of the scope. Adds its wall time and the process's
/// CPU time to TrainState::spent and spent_cpu. TrainState::activity shows the phase meanwhile, and
/// it is recorded as an event of the process.
class Phase {
 public:
  /// `place` and `what` are passed to Activity::begin; empty = Activity is not changed.
  Phase(TrainState& state, double Spent::*part, const std::string& place, const std::string& what);

  /// Phase of one hook of the callback of this name.
  Phase(TrainState& state, const std::string& callback, const char* hook);

  Phase(const Phase&) = delete;
  ~Phase();

 private:
  TrainState& state_;
  double Spent::*const part_;
  const std::string callback_;  // name of the callback; empty = none
  const Clock::time_point began_ = Clock::now();
  const double cpu_s_;
};

}  // namespace millrace
