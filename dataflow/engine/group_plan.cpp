#include "millrace/dataflow/engine/group_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

constexpr std::int32_t kUnknown = -2;
constexpr std::size_t kMostMarks = 64;

/// Returns the filters right after the first stage, whose input the source can describe.
std::vector<const Map*> leading_filters(const Plan& plan) {
  std::vector<const Map*> filters;
  if (!plan.about) return filters;
  for (std::size_t k = 1; k < plan.stages.size(); ++k) {
    const auto* map = std::get_if<Map>(&plan.stages[k].work);
    if (!map || !map->filters || !(plan.stages[k].takes == plan.about->type)) break;
    filters.push_back(map);
  }
  return filters;
}

}  // namespace

SampleKeys::SampleKeys(const Plan& plan)
    : plan_(plan), group_(plan.group()), filters_(leading_filters(plan)) {
  if (differ()) known_.assign(static_cast<std::size_t>(plan.size), kUnknown);
}

std::int64_t SampleKeys::operator()(std::int64_t sample) {
  if (!differ()) return 0;
  auto& known = known_[static_cast<std::size_t>(sample)];
  if (known == kUnknown) known = static_cast<std::int32_t>(look_up(sample));
  return known;
}

std::int64_t SampleKeys::look_up(std::int64_t sample) const {
  Message about;
  try {
    about = plan_.about->of(sample);
    for (const auto* filter : filters_) {
      Rng none{};
      about = filter->function(std::move(about), none);
      if (!about) return kUnwanted;
    }
  } catch (const std::exception&) {
    return 0;
  }
  if (groups() == 1) return 0;
  std::string why;
  try {
    const auto key = group_->key(about);
    if (key < group_->groups) return static_cast<std::int64_t>(key);
    why = fmt::format("key {} is out of range; there are {} groups", key, group_->groups);
  } catch (const std::exception& error) {
    why = error.what();
  }
  throw Error(fmt::format("sample {} cannot be grouped: {}", sample, why));
}

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
