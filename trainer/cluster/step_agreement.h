// What all ranks agree on before each step.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/dataflow/detection/sample.h"
#include "millrace/trainer/cluster/cluster.h"

namespace millrace {

/// What the other ranks need to know of a batch.
struct BatchSize {
  std::int64_t images = 0;
  std::int32_t width = 0, height = 0;                     // padded
  std::int64_t most_objects = 0, objects_with_shape = 0;  // see StepInfo
  std::vector<std::int64_t> ids = {};  // of the images; empty unless they are asked for
};

std::vector<BatchSize> sizes_of(std::span<const Batch> batches, bool with_ids = false);

/// A batch's place in its step, whose images are in one order for any number of ranks: the first
/// micro-batch of every rank, then the second, and so on.
struct StepPlace {
  std::int64_t first_image = 0;        // among all of the step
  std::int32_t width = 0, height = 0;  // largest padding of all ranks in this micro-batch
  std::int64_t fewest_images = 0;      // that any rank has of it
  std::int64_t most_objects = 0, objects_with_shape = 0;  // of the whole step, see StepInfo
};

/// What one rank says before a step.
struct StepWish {
  std::string stop = {};                // why training is to end here; empty: it goes on
  int signal = 0;                       // to stop; 0: none
  bool figures = false;                 // wants the detector's figures
  bool checkpoint = false;              // wants a checkpoint
  std::uint64_t data_place = 0;         // digest of the cursor after the step; 0: it has no data
  double waited_s = 0;                  // for the data
  double busy_s = 0;                    // since the last agreement, except waiting for other ranks
  std::vector<double> hyper = {};       // by name; the chief's count
  std::vector<BatchSize> batches = {};  // this rank's part of the step
};

struct StepAgreement {
  std::string stop;  // of the first rank with a reason, named unless it is the chief
  int signal = 0;    // of any rank
  bool figures = false, checkpoint = false;
  std::int64_t images = 0;                     // of the whole step
  std::vector<std::vector<std::int64_t>> ids;  // of these, by batch in the order of StepPlace
  std::vector<double> hyper;                   // the chief's
  std::vector<StepPlace> places;               // of this rank's batches; empty if training ends
  std::int64_t slowest = 0;                    // rank that was busy longest
  double slowest_s = 0;                        // how much longer than the quickest
  double slowest_waited_s = 0;                 // its wait for data
};

/// One exchange. Throws Error if ranks run different programs, their data have come to different
/// places, or they have different numbers of batches.
StepAgreement agree_on_step(const Cluster& cluster, const StepWish& wish);

/// Adds up how long each rank has kept the others waiting, and reports the longest now and then.
class Stragglers {
 public:
  explicit Stragglers(Clock::duration every = std::chrono::minutes(5)) : every_(every) {}

  /// The report after this step; mostly nothing, at most one in `every`.
  std::optional<std::string> add(const StepAgreement& step, const Cluster& cluster,
                                 Clock::time_point now = Clock::now());

 private:
  struct Lost {
    double all_s = 0, data_s = 0;
  };

  Clock::duration every_;
  Clock::time_point began_{};
  std::map<std::int64_t, Lost> lost_;  // by rank
};

}  // namespace millrace
