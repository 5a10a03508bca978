// Which rank the others wait for.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "millrace/trainer/cluster/step_agreement.h"

namespace millrace {

/// Adds up the time that ranks have kept the others waiting, and says now and then whose was
/// longest, where it counts.
class Stragglers {
 public:
  using Clock = std::chrono::steady_clock;

  /// `every`: how often at most.
  explicit Stragglers(Clock::duration every = std::chrono::minutes(5)) : every_(every) {}

  /// What is to be said after this step; mostly nothing.
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
