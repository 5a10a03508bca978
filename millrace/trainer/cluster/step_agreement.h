// What all ranks agree upon before each step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// What the others need to know of one batch.
struct BatchSize {
  std::int64_t images = 0;
  std::int32_t width = 0, height = 0;  // padded
};

std::vector<BatchSize> sizes_of(std::span<const Batch> batches);

/// A batch's place in its step. A step's images are in one order, whatever the number of ranks:
/// those of the first micro-batch of every rank, then those of the second, and so on.
struct StepPlace {
  std::int64_t first_image = 0;        // of the batch, among all of the step
  std::int32_t width = 0, height = 0;  // the largest padding of all ranks in this micro-batch
};

/// What one rank says before a step.
struct StepWish {
  std::string stop = {};         // why training is to end here; empty: it goes on
  int signal = 0;                // that asks to stop; 0: none
  bool figures = false;          // the detector's figures are wanted
  bool checkpoint = false;       // one is wanted
  std::uint64_t data_place = 0;  // digest of the place after the step's data; 0: it has none
  double waited_s = 0;           // for the data
  double busy_s = 0;             // since the last agreement, without waiting for other ranks
  // hyper-parameters in the order of their names; the chief's count
  std::vector<double> hyper = {};
  std::vector<BatchSize> batches = {};  // this rank's part of the step
};

/// What comes of all of them.
struct StepAgreement {
  std::string stop;  // of the first rank that has a reason, named where it is not the chief
  int signal = 0;    // that came to any of them
  bool figures = false, checkpoint = false;
  std::int64_t images = 0;        // of the whole step
  std::vector<double> hyper;      // the chief's
  std::vector<StepPlace> places;  // of this rank's batches; none where training ends
  std::int64_t slowest = 0;       // rank that was busy longest
  double slowest_s = 0;           // how much longer than the quickest
  double slowest_waited_s = 0;    // how much of its time it waited for data
};

/// One exchange. Every rank calls it at the same step. Throws Error where ranks run different
/// programs, their data have come to different places, or they have different numbers of batches.
StepAgreement agree_on_step(const Cluster& cluster, const StepWish& wish);

}  // namespace millrace
