// Adds the time that it lives to a part of a training's.
#pragma once

#include "millrace/base/clock.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// Of TrainState::spent and spent_cpu.
class TimedPart {
 public:
  TimedPart(TrainState& state, double Spent::*part) : state_(state), part_(part) {}
  TimedPart(const TimedPart&) = delete;
  ~TimedPart() {
    state_.spent.*part_ += seconds_since(began_);
    state_.spent_cpu.*part_ += cpu_seconds() - cpu_s_;
  }

 private:
  TrainState& state_;
  double Spent::*part_;
  const Clock::time_point began_ = Clock::now();
  const double cpu_s_ = cpu_seconds();
};

}  // namespace millrace
