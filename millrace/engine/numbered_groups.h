// The groups of a plan by number.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "millrace/engine/group_plan.h"

namespace millrace {

/// Finds group k of a plan: from the one found last, or from the nearest of a few marks on the way.
/// Costs a walk from there, a step where k ascends one by one; memory stays bounded however far it
/// gets. Not for several threads at once.
class NumberedGroups {
 public:
  explicit NumberedGroups(GroupPlan start) : now_(start), marks_{std::move(start)} {}

  /// REQUIRES: number >= 0. The plan's end or failure where that comes first, under this number;
  /// any group once `stop` is set.
  PlannedGroup at(std::int64_t number, const std::atomic<bool>& stop);

  /// Up to the furthest group that was found; see GroupPlan.
  std::int64_t filtered() const { return filtered_; }

 private:
  void mark();

  GroupPlan now_;
  std::vector<GroupPlan> marks_;  // ascending; the first is the start
  std::int64_t stride_ = 64;      // groups between marks
  std::int64_t filtered_ = 0;
};

}  // namespace millrace
