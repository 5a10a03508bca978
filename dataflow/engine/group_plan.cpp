#include "millrace/dataflow/engine/group_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr std::size_t kMostMarks = 64;

}  // namespace

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
      if (left != waiting_.end()) return finish_group(*left);
    }
    if (ends) return {.number = number_, .cursor = cursor()};

    epoch_ = epoch;
    again ? static_cast<void>(++taken_again_) : static_cast<void>(++next_);
    const auto key = keys_->differ() ? (*keys_)(order_->turn(position).sample) : 0;
    if (key == SampleKeys::kUnwanted) {
      ++filtered_;
      if (++filtered_in_a_row_ <= 2 * order_->size()) continue;
      throw Error(
          fmt::format("no sample passed for two epochs: {} samples in a row were filtered out",
                      filtered_in_a_row_ - 1));
    }
    filtered_in_a_row_ = 0;
    auto& members = waiting_[static_cast<std::size_t>(key)];
    members.push_back(position);
    if (std::ssize(members) == size_) return finish_group(members);
  }
}

PlannedGroup GroupPlan::finish_group(std::vector<std::int64_t>& members) {
  PlannedGroup group{.number = number_++, .positions = std::exchange(members, {})};
  group.cursor = cursor();
  return group;
}

Cursor GroupPlan::cursor() const {
  Cursor cursor{
      .next = next_,
      .pending = {again_.begin() + static_cast<std::ptrdiff_t>(taken_again_), again_.end()}};
  for (const auto& members : waiting_)
    cursor.pending.insert(cursor.pending.end(), members.begin(), members.end());
  std::ranges::sort(cursor.pending);
  return cursor;
}

PlannedGroup NumberedGroups::at(std::int64_t number, const std::atomic<bool>& stop) {
  const auto after = std::ranges::upper_bound(marks_, number, {}, &GroupPlan::number);
  const auto& nearest = *std::prev(after);  // the start has number 0
  if (number < now_.number() || now_.number() < nearest.number()) now_ = nearest;
  while (true) {
    if (now_.number() >= marks_.back().number() + stride_) mark();
    const auto before = now_.number();
    auto group = now_.next();
    filtered_ = std::max(filtered_, now_.filtered());
    if (before == number) return group;
    if (now_.number() == before || stop) {  // the plan has ended or failed
      group.number = number;
      return group;
    }
  }
}

/// Stores a copy of the plan; if there are too many, drops every second one.
void NumberedGroups::mark() {
  marks_.push_back(now_);
  if (marks_.size() < kMostMarks) return;
  for (std::size_t k = 1; 2 * k < marks_.size(); ++k) marks_[k] = marks_[2 * k];
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>((marks_.size() + 1) / 2), marks_.end());
  stride_ *= 2;
}

}  // namespace millrace
