// Issues items, the members of one planned group after the other. Internal.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "millrace/dataflow/engine/item.h"
#include "millrace/dataflow/engine/order.h"

namespace millrace {

/// Yields members [rank * size, (rank + 1) * size) of each group (fewer in the last). Thread-safe.
class SourceLine {
 public:
  /// Yields groups 0, 1, 2, ... until the plan ends, or, if `by_number`, the requested groups.
  /// `order` is borrowed.
  SourceLine(const Order& order, GroupPlan plan, std::int64_t rank, std::int64_t size,
             bool by_number);

  /// Requests a group, after those already requested. Never waits. REQUIRES: by number.
  void ask(std::int64_t number);

  /// Returns the next item; nullptr if none is due now.
  SamplePtr next();

  /// Ends the line: `next` returns nullptr from now on. Never waits.
  void stop() { stopped_ = true; }
  /// Returns the count of positions skipped because a filter rejects their samples. Never waits.
  std::int64_t filtered() const { return filtered_; }

 private:
  bool open_next_group();
  std::optional<std::int64_t> next_number();

  const Order& order_;
  const std::int64_t rank_, size_;
  const bool by_number_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::int64_t> filtered_ = 0;

  std::mutex asked_mutex_;
  std::deque<std::int64_t> asked_;

  std::mutex mutex_;  // guards the members below
  NumberedGroups groups_;
  std::int64_t next_group_ = 0;                // in order only
  bool ended_ = false;                         // in order only: the plan has ended or failed
  std::shared_ptr<const PlannedGroup> group_;  // the group being issued
  std::size_t member_ = 0, last_ = 0;          // in group_: the next member, and one past this
                                               // rank's last
  std::int64_t number_ = 0;
};

}  // namespace millrace
