// Computes the steps and groups of a flow before it starts.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// Returns the number of steps of `images_per_step` (the last may have fewer) for `epochs` epochs
/// of `samples`.
inline std::int64_t count_steps(double epochs, std::int64_t samples, std::int64_t images_per_step) {
  return static_cast<std::int64_t>(
      std::ceil(epochs * static_cast<double>(samples) / static_cast<double>(images_per_step)));
}

/// Calls `see` with the samples of each group over all ranks, in order, as a flow of this plan and
/// these options reads them: the first `most` groups, or all if the flow ends earlier. The plan
/// needs only its stages that group and filter.
void for_each_group(const Plan& plan, const FlowOptions& options, std::int64_t most,
                    const std::function<void(std::span<const std::int64_t> samples)>& see);

}  // namespace millrace
