// The samples of each group, planned before any of them is read. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/sample_keys.h"

namespace millrace {

/// The members of one group over all ranks.
struct PlannedGroup {
  std::int64_t number = 0;              // 0 at the start of the plan
  std::vector<std::int64_t> positions;  // in the order; empty: the flow has ended
  Cursor cursor;                        // after the group
  std::exception_ptr failure;           // the plan cannot go on
};

/// Walks the order that all ranks share and gives groups as they become full; with Partial::keep
/// also, by key, the incomplete ones at the end of an epoch. A pure function of its arguments, the
/// same on every rank. Copies go on from the same place.
class GroupPlan {
 public:
  /// Groups of `size` members over all ranks. `order` and `keys` are borrowed.
  GroupPlan(const Order& order, SampleKeys& keys, const FlowOptions& options, std::int64_t size);

  /// The next group; after the end or a failure, always that.
  PlannedGroup next();

  /// The number of the next group.
  std::int64_t number() const { return number_; }
  /// Positions skipped because a filter rejects their samples.
  std::int64_t filtered() const { return filtered_; }

 private:
  PlannedGroup walk();
  PlannedGroup give(std::vector<std::int64_t>& members);
  Cursor here() const;

  const Order* order_;
  SampleKeys* keys_;
  Partial partial_;
  std::int64_t size_;
  std::int64_t past_;                // first position of no epoch
  std::vector<std::int64_t> again_;  // pending at the start
  std::size_t taken_again_ = 0;
  std::int64_t next_;       // Cursor::next
  std::int64_t epoch_ = 0;  // of the latest member
  std::int64_t number_ = 0;
  std::int64_t filtered_ = 0, filtered_in_a_row_ = 0;
  std::vector<std::vector<std::int64_t>> waiting_;  // incomplete groups, by key
  std::exception_ptr failure_;
};

/// The groups of a plan by number. Walks from the group found last, or from the nearest of a few
/// copies kept on the way: one step if numbers ascend one by one, bounded memory however far it
/// gets. Not thread-safe.
class NumberedGroups {
 public:
  explicit NumberedGroups(GroupPlan start) : now_(start), marks_{std::move(start)} {}

  /// REQUIRES: number >= 0. If the plan ends or fails before, that, under this number; any group
  /// once `stop` is set.
  PlannedGroup at(std::int64_t number, const std::atomic<bool>& stop);

  /// Up to the furthest group found; see GroupPlan.
  std::int64_t filtered() const { return filtered_; }

 private:
  void mark();

  GroupPlan now_;
  std::vector<GroupPlan> marks_;  // ascending; the first is the start
  std::int64_t stride_ = 64;      // groups between marks
  std::int64_t filtered_ = 0;
};

}  // namespace millrace
