// Where items come from: hands out the members of one planned group after the other.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "millrace/engine/feed.h"
#include "millrace/engine/item.h"
#include "millrace/engine/numbered_groups.h"
#include "millrace/engine/order.h"

namespace millrace {

/// What one rank takes of each group: the members rank * size .. (rank + 1) * size - 1, as far as
/// there are.
struct Slice {
  std::int64_t rank = 0;
  std::int64_t size = 1;
};

/// Gives the groups of a plan whose numbers its feed gives. Thread-safe.
class SourceLine {
 public:
  /// `order` and `feed` are borrowed.
  SourceLine(const Order& order, GroupPlan plan, Slice slice, Feed& feed);

  /// The next item, nullptr where there is none.
  SamplePtr next();

  /// From now on there is no next item. Never waits.
  void stop() { stopped_ = true; }
  /// Positions passed by, since a filter does not want their samples. Never waits.
  std::int64_t filtered() const { return filtered_; }

 private:
  bool open_next_group();

  const Order& order_;
  const Slice slice_;
  Feed& feed_;
  std::atomic<bool> stopped_ = false;
  std::atomic<std::int64_t> filtered_ = 0;

  std::mutex mutex_;  // guards what follows
  NumberedGroups groups_;
  std::shared_ptr<const PlannedGroup> group_;  // the one that is handed out
  std::size_t member_ = 0, last_ = 0;          // in group_: the next, and after this rank's last
  std::int64_t number_ = 0;
};

}  // namespace millrace
