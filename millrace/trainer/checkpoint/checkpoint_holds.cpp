#include "millrace/trainer/checkpoint/checkpoint_holds.h"

namespace millrace {

CheckpointHold CheckpointHolds::hold(std::int64_t step) {
  std::erase_if(all_, [](const auto& one) { return one.expired(); });
  auto hold = std::make_shared<const std::int64_t>(step);
  all_.push_back(hold);
  return hold;
}

bool CheckpointHolds::is_held(std::int64_t step) const {
  return at_newest_.contains(step) || held().contains(step);
}

std::set<std::int64_t> CheckpointHolds::held() const {
  std::set<std::int64_t> steps;
  for (const auto& one : all_)
    if (const auto hold = one.lock()) steps.insert(*hold);
  return steps;
}

}  // namespace millrace
