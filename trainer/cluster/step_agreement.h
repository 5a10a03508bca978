// The agreement of all ranks before each step.
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

/// Properties of a batch that the other ranks need.
struct BatchSize {
  std::int64_t images = 0;
  std::int32_t width = 0, height = 0;                    // pixels after padding
  std::int64_t max_objects = 0, objects_with_shape = 0;  // see StepInfo
  std::vector<std::int64_t> ids = {};                    // image ids; empty unless requested
};

std::vector<BatchSize> sizes_of(std::span<const Batch> batches, bool with_ids = false);

/// A batch's place in its step. The images of a step have the same order for any number of ranks:
/// the first micro-batch of every rank, then the second, and so on.
struct StepPlace {
  std::int64_t first_image = 0;        // index among all images of the step
  std::int32_t width = 0, height = 0;  // pixels; largest padding of all ranks in this micro-batch
  std::int64_t fewest_images = 0;      // smallest count of any rank in this micro-batch
  std::int64_t max_objects = 0, objects_with_shape = 0;  // over the whole step, see StepInfo
};

/// The input of one rank to the agreement.
struct StepProposal {
  std::string stop = {};          // reason to end training here; empty = continue
  int signal = 0;                 // stop signal; 0 = none
  bool detector_metrics = false;  // true = requests the detector's metrics
  bool checkpoint = false;        // true = requests a checkpoint
  std::uint64_t data_place = 0;   // digest of the cursor after the step; 0 = the rank has no data
  double waited_s = 0;            // seconds waiting for the data
  double busy_s = 0;  // seconds since the last agreement, without waiting for other ranks
  std::vector<double> hyper = {};       // hyper-parameters by name; those of rank 0 are used
  std::vector<BatchSize> batches = {};  // this rank's part of the step
};

struct StepAgreement {
  std::string stop;  // reason of the first rank that has one; names the rank unless it is 0
  int signal = 0;    // stop signal of any rank; 0 = none
  bool detector_metrics = false, checkpoint = false;
  std::int64_t images = 0;                     // number of images of the whole step
  std::vector<std::vector<std::int64_t>> ids;  // image ids, by batch in the order of StepPlace
  std::vector<double> hyper;                   // hyper-parameters of rank 0
  std::vector<StepPlace> places;  // places of this rank's batches; empty if training ends
  std::int64_t slowest = 0;       // rank that was busy longest
  double slowest_s = 0;           // difference to the fastest rank in seconds
  double slowest_waited_s = 0;    // seconds that this rank waited for data
};

/// Agrees in one exchange. Throws Error if ranks run different programs, are at different positions
/// of the data, or have different numbers of batches.
StepAgreement agree_on_step(const Cluster& cluster, const StepProposal& proposal);

/// Adds up how long each rank has delayed the others, and periodically reports the worst.
class Stragglers {
 public:
  explicit Stragglers(Clock::duration every = std::chrono::minutes(5)) : every_(every) {}

  /// Returns a report after this step, up to once per `every`; nullopt for most steps.
  std::optional<std::string> add(const StepAgreement& step, const Cluster& cluster,
                                 Clock::time_point now = Clock::now());

 private:
  struct Lost {
    double all_s = 0, data_s = 0;
  };

  Clock::duration every_;
  Clock::time_point began_{};
  std::map<std::int64_t, Lost> lost_;  // lost time by rank
};

}  // namespace millrace
