// What is known of a training before its first step.
#pragma once

#include <cstdint>
#include <functional>

#include "millrace/dataflow/detection/count_objects.h"

namespace millrace {

struct TrainingFacts {
  std::int64_t ranks = 1;      // processes that share each step
  bool starts_random = false;  // no weights are loaded, and none were trained before
  /// Counts what there is to learn: one pass over all samples. Empty where the samples are not
  /// known here.
  std::function<ObjectCounts()> count_objects;
};

}  // namespace millrace
