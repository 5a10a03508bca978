// Which rank the others wait for.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "millrace/trainer/cluster/step_agreement.h"

namespace millrace {

/// Adds up how long each rank has kept the others waiting, and reports the longest now and then.
class Stragglers {
 public:
  using Clock = std::chrono::steady_clock;

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
