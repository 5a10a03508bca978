// Plans the samples of each group before any sample is read. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/plan.h"

namespace millrace {

/// The keys of a plan's samples, computed from the source's descriptions (About) on first use. Not
/// thread-safe.
class SampleKeys {
 public:
  static constexpr std::int64_t kUnwanted = -1;

  /// Borrows `plan`.
  explicit SampleKeys(const Plan& plan);

  std::int64_t groups() const { return group_ ? static_cast<std::int64_t>(group_->groups) : 1; }

  /// Returns 0 .. groups - 1, or kUnwanted if a filter right after the first stage rejects the
  /// sample. A sample that the source cannot describe belongs to group 0; the stage that reads it
  /// reports the error. Throws Error with the sample if the key fails.
  std::int64_t operator()(std::int64_t sample);
  /// Returns true if samples can have different keys.
  bool differ() const { return !filters_.empty() || groups() > 1; }

 private:
  std::int64_t look_up(std::int64_t sample) const;

  const Plan& plan_;
  const Group* group_;
  std::vector<const Map*> filters_;  // filters that take what About describes
  std::vector<std::int32_t> known_;  // by sample
};

/// The members of one group over all ranks.
struct PlannedGroup {
  std::int64_t number = 0;              // 0 at the start of the plan
  std::vector<std::int64_t> positions;  // in order; empty = the flow has ended
  Cursor cursor;                        // place after the group
  std::exception_ptr failure;           // set if the plan cannot continue
};

/// Walks the order that all ranks share and returns groups as they become full; with Partial::keep
/// and groups by key also the incomplete groups at the end of an epoch. A pure function of its
/// arguments, the same on every rank. A copy continues from the same place.
class GroupPlan {
 public:
  /// Plans groups of `size` members over all ranks. `order` and `keys` are borrowed.
  GroupPlan(const Order& order, SampleKeys& keys, const FlowOptions& options, std::int64_t size);

  /// Returns the next group; after the end or a failure, always the end or that failure.
  PlannedGroup next();

  /// Returns the number of the next group.
  std::int64_t number() const { return number_; }
  /// Returns the count of positions skipped because a filter rejects their samples.
  std::int64_t filtered() const { return filtered_; }

 private:
  PlannedGroup walk();
  PlannedGroup finish_group(std::vector<std::int64_t>& members);
  Cursor cursor() const;

  const Order* order_;
  SampleKeys* keys_;
  Partial partial_;
  std::int64_t size_;
  std::int64_t past_;                // first position after the last epoch
  std::vector<std::int64_t> again_;  // positions pending at the start
  std::size_t taken_again_ = 0;
  std::int64_t next_;       // Cursor::next
  std::int64_t epoch_ = 0;  // epoch of the latest member
  std::int64_t number_ = 0;
  std::int64_t filtered_ = 0, filtered_in_a_row_ = 0;
  std::vector<std::vector<std::int64_t>> waiting_;  // incomplete groups by key
  std::exception_ptr failure_;
};

/// Finds the groups of a plan by number. Walks from the group found last, or from the nearest of a
/// few stored copies: one step if numbers ascend one by one, with bounded memory. Not thread-safe.
class NumberedGroups {
 public:
  explicit NumberedGroups(GroupPlan start) : now_(start), marks_{std::move(start)} {}

  /// Returns the group with this number. If the plan ends or fails earlier, returns that under this
  /// number; once `stop` is set, returns any group. REQUIRES: number >= 0.
  PlannedGroup at(std::int64_t number, const std::atomic<bool>& stop);

  /// Returns the count of filtered positions up to the furthest group found; see GroupPlan.
  std::int64_t filtered() const { return filtered_; }

 private:
  void mark();

  GroupPlan now_;
  std::vector<GroupPlan> marks_;  // ascending; the first is the start
  std::int64_t stride_ = 64;      // groups between marks
  std::int64_t filtered_ = 0;
};

}  // namespace millrace
