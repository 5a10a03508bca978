#include "millrace/engine/group_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "millrace/base/errors.h"

namespace millrace {

GroupPlan::GroupPlan(const Order& order, SampleKeys& keys, const FlowOptions& options,
                     std::int64_t size)
    : order_(&order),
      keys_(&keys),
      partial_(options.partial),
      size_(size),
      past_(options.epochs > 0 ? options.epochs * order.size()
                               : std::numeric_limits<std::int64_t>::max()),
      again_(options.start.pending),
      next_(options.start.next),
      waiting_(static_cast<std::size_t>(keys.groups())) {}

PlannedGroup GroupPlan::next() {
  try {
    if (!failure_) return walk();
  } catch (...) {
    failure_ = std::current_exception();
  }
  return {.number = number_, .failure = failure_};
}

PlannedGroup GroupPlan::walk() {
  while (true) {
    const bool again = taken_again_ < again_.size();
    const auto position = again ? again_[taken_again_] : next_;
    const auto epoch = order_->epoch(position);
    const bool ends = position >= past_;
    if (ends || (partial_ == Partial::keep && epoch != epoch_)) {
      const auto left = std::ranges::find_if_not(waiting_, &std::vector<std::int64_t>::empty);
      if (left != waiting_.end()) return give(*left);
    }
    if (ends) return {.number = number_, .cursor = here()};

    epoch_ = epoch;
    again ? static_cast<void>(++taken_again_) : static_cast<void>(++next_);
    const auto key = key_at(position);
    if (key == SampleKeys::kUnwanted) {
      check_not_endless();
      continue;
    }
    filtered_in_a_row_ = 0;
    auto& members = waiting_[static_cast<std::size_t>(key)];
    members.push_back(position);
    if (std::ssize(members) == size_) return give(members);
  }
}

std::int64_t GroupPlan::key_at(std::int64_t position) {
  return keys_->differ() ? (*keys_)(order_->turn(position).sample) : 0;
}

void GroupPlan::check_not_endless() {
  ++filtered_;
  if (++filtered_in_a_row_ > 2 * order_->size())
    throw Error(fmt::format(
        "nothing has come through for two epochs: {} samples in a row were filtered out",
        filtered_in_a_row_ - 1));
}

PlannedGroup GroupPlan::give(std::vector<std::int64_t>& members) {
  PlannedGroup group{.number = number_++, .positions = std::exchange(members, {})};
  group.cursor = here();
  return group;
}

Cursor GroupPlan::here() const {
  Cursor cursor{
      .next = next_,
      .pending = {again_.begin() + static_cast<std::ptrdiff_t>(taken_again_), again_.end()}};
  for (const auto& members : waiting_)
    cursor.pending.insert(cursor.pending.end(), members.begin(), members.end());
  std::ranges::sort(cursor.pending);
  return cursor;
}

}  // namespace millrace
