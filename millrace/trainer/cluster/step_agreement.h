// What all ranks agree upon before each step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// What one rank says before a step.
struct StepWish {
  std::string stop;           // why training is to end here; empty: it goes on
  int signal = 0;             // that asks to stop; 0: none
  bool figures = false;       // the detector's figures are wanted
  bool checkpoint = false;    // one is wanted
  std::uint64_t place = 0;    // digest of the place behind the step's data; 0: it has none
  std::int64_t images = 0;    // of this rank's part of the step
  double waited_s = 0;        // for them
  double busy_s = 0;          // since it was agreed last, without waiting for other ranks
  std::vector<double> hyper;  // hyper-parameters in the order of their names; the chief's count
};

/// What comes of all of them.
struct StepAgreement {
  std::string stop;  // of the first rank that has a reason, named where it is not the chief
  int signal = 0;    // that came to any of them
  bool figures = false, checkpoint = false;
  std::int64_t images = 0;      // of the whole step
  std::vector<double> hyper;    // the chief's
  std::int64_t slowest = 0;     // rank that was busy longest
  double slowest_s = 0;         // that it was busy longer than the quickest
  double slowest_waited_s = 0;  // of its time, for data
};

/// One exchange. Every rank calls it at the same step. Throws Error where ranks run different programs, or their data
/// have come to different places.
StepAgreement agree_on_step(const Cluster& cluster, const StepWish& wish);

}  // namespace millrace
