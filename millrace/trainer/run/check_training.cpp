#include "millrace/trainer/run/check_training.h"

#include <memory>
#include <optional>

#include "millrace/base/log.h"
#include "millrace/dataflow/detection/count_objects.h"
#include "millrace/trainer/detector/make_detector.h"

namespace millrace {

TrainingFacts training_facts(const TrainData& data, bool starts_random, std::int64_t ranks) {
  TrainingFacts facts{.ranks = ranks, .starts_random = starts_random};
  if (!data.source) return facts;
  facts.count_objects = [source = data.source,
                         counts = std::make_shared<std::optional<ObjectCounts>>()] {
    if (!*counts) *counts = count_objects(*source);
    return **counts;
  };
  return facts;
}

void check_training(const Detector& detector, const TrainingFacts& facts, const Cluster& cluster) {
  const auto warnings = warnings_of(detector, facts);
  if (!cluster.is_chief()) return;
  for (const auto& warning : warnings) spdlog::warn(warning);
}

}  // namespace millrace
