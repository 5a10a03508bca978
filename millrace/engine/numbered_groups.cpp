#include "millrace/engine/numbered_groups.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t kMostMarks = 64;

}  // namespace

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
    if (now_.number() == before || stop) {  // it goes no further
      group.number = number;
      return group;
    }
  }
}

/// Every second mark goes where they become too many.
void NumberedGroups::mark() {
  marks_.push_back(now_);
  if (marks_.size() < kMostMarks) return;
  for (std::size_t k = 1; 2 * k < marks_.size(); ++k) marks_[k] = marks_[2 * k];
  marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>((marks_.size() + 1) / 2), marks_.end());
  stride_ *= 2;
}

}  // namespace millrace
