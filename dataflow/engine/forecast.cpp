#include "millrace/dataflow/engine/forecast.h"

#include <vector>

#include "millrace/dataflow/engine/group_plan.h"
#include "millrace/dataflow/engine/order.h"

namespace millrace {

void for_each_group(const Plan& plan, const FlowOptions& options, std::int64_t most,
                    const std::function<void(std::span<const std::int64_t> samples)>& see) {
  const Order order(plan.size, plan.repeats, options.seed, options.shuffle);
  SampleKeys keys(plan);
  GroupPlan groups(order, keys, options, plan.batch() * options.ranks);
  std::vector<std::int64_t> samples;
  while (most-- > 0) {
    const auto group = groups.next();
    if (group.failure || group.positions.empty()) return;
    samples.clear();
    for (const auto position : group.positions) samples.push_back(order.turn(position).sample);
    see(samples);
  }
}

}  // namespace millrace
