// The learning rate over time, in epochs so that it holds for any batch and data set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/options.h"

namespace millrace {

struct ScheduleOptions {
  std::string kind = "step";                 // step | cosine | constant
  std::vector<double> milestones = {8, 11};  // epochs
  double gamma = 0.1;                        // factor at each milestone
  double warmup_epochs = 0;
  std::int64_t warmup_steps = 1000;  // used where warmup_epochs is 0
  double warmup_factor = 0.001;      // of the rate at step 0

  void describe(Options& o);
};

/// A pure function of time; resuming needs no state.
class Schedule {
 public:
  /// `peak` is the rate after warm-up; `epochs` is the length of the run, where a cosine reaches
  /// zero.
  Schedule(ScheduleOptions options, double peak, double epochs);

  /// The rate of step number `step` (from 0), which begins after `progress` epochs.
  double rate(double progress, std::int64_t step) const;

 private:
  double warmup(double progress, std::int64_t step) const;
  double decay(double progress) const;

  ScheduleOptions options_;
  double peak_;
  double epochs_;
};

}  // namespace millrace
