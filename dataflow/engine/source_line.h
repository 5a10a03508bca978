// The source of items: hands out the members of one planned group after the other. Internal.
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
  /// Gives the groups 0, 1, 2, ... until the plan ends, or `by_number` those that are asked for.
  /// `order` is borrowed.
  SourceLine(const Order& order, GroupPlan plan, std::int64_t rank, std::int64_t size,
             bool by_number);

  /// Wants a group, after those already asked for. Never waits. REQUIRES: by number.
  void ask(std::int64_t number);

  /// The next item; nullptr if none is due now.
  SamplePtr next();

  /// Ends the line: `next` returns nullptr from now on. Never waits.
  void stop() { stopped_ = true; }
  /// Positions skipped because a filter rejects their samples. Never waits.
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

  std::mutex mutex_;  // guards what follows
  NumberedGroups groups_;
  std::int64_t next_group_ = 0;                // in order
  bool ended_ = false;                         // in order: the plan has ended or failed
  std::shared_ptr<const PlannedGroup> group_;  // the one that is handed out
  std::size_t member_ = 0, last_ = 0;          // in group_: the next, and after this rank's last
  std::int64_t number_ = 0;
};

}  // namespace millrace
