// Where items come from: hands out the members of one planned group after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "millrace/engine/item.h"
#include "millrace/engine/numbered_groups.h"
#include "millrace/engine/order.h"

namespace millrace {

/// What one rank takes of each group: the members rank * size .. (rank + 1) * size - 1, as far as there are.
struct Slice {
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

/// Gives the groups of a plan in their order, or those that it is asked for. Thread-safe.
class SourceLine {
 public:
  /// `order` is borrowed.
  SourceLine(const Order& order, GroupPlan plan, Slice slice, bool on_demand);

  /// The next item, nullptr where there is none: behind the mark of the end, and on demand until more is asked for.
  ItemPtr next();

  /// On demand: the group of this number comes behind all that were asked for before.
  void ask(std::int64_t number);

  /// From now on there is no next item. Never waits.
  void stop() { stopped_ = true; }
  /// Positions passed by, since a filter does not want their samples. Never waits.
  std::int64_t filtered() const { return filtered_; }

 private:
  bool open_next_group();
  std::optional<PlannedGroup> next_group();

  const Order& order_;
  const Slice slice_;
  const bool on_demand_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::int64_t> filtered_ = 0;

  std::mutex mutex_;  // of what follows
  GroupPlan plan_;
  NumberedGroups numbered_;
  PlannedGroup group_;
  std::size_t member_ = 0, last_ = 0;  // of group_: the next one, and behind this rank's last
  std::int64_t number_ = 0;

  std::mutex asked_mutex_;
  std::deque<std::int64_t> asked_;
};

}  // namespace millrace
