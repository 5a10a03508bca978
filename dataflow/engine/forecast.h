// The steps and groups of a flow, known before it starts.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// Steps of `images_per_step` that go `epochs` times through `samples`; the last may have fewer.
inline std::int64_t count_steps(double epochs, std::int64_t samples, std::int64_t images_per_step) {
  return static_cast<std::int64_t>(
      std::ceil(epochs * static_cast<double>(samples) / static_cast<double>(images_per_step)));
}

/// Calls `see` with the samples of each group over all ranks, group after group, as a flow of this
/// plan and these options takes them in: the first `most` groups, or all if the flow ends earlier.
/// Of its stages the plan needs only those that group and filter.
void for_each_group(const Plan& plan, const FlowOptions& options, std::int64_t most,
                    const std::function<void(std::span<const std::int64_t> samples)>& see);

}  // namespace millrace
