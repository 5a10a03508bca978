// What the training thread does: one scope that all records of time are fed by.
#pragma once

#include <string>

#include "millrace/base/clock.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// A part of a training, from here to the end of the scope. Its wall time and the CPU time of the
/// process go to TrainState::spent and spent_cpu; TrainState::activity says meanwhile what is done,
/// which is an event of the process, too.
class Phase {
 public:
  /// `place` and `what` as Activity::begin takes them; "": Activity goes on with what it was.
  Phase(TrainState& state, double Spent::*part, const std::string& place, const std::string& what);

  /// A hook of the callback of this name.
  Phase(TrainState& state, const std::string& callback, const char* hook);

  Phase(const Phase&) = delete;
  ~Phase();

 private:
  TrainState& state_;
  double Spent::*const part_;
  const std::string callback_;  // "": none
  const Clock::time_point began_ = Clock::now();
  const double cpu_s_;
};

}  // namespace millrace
