// The one part of a flow that remembers: half-filled groups, and so the cursor.
#pragma once

#include <vector>

#include "dataflow/flow_options.h"
#include "dataflow/item.h"
#include "dataflow/stage.h"

namespace millrace {

/// Takes items in order, one thread at a time, and gives items numbered anew: full groups, items that
/// have lost their message, and where an epoch ends (Partial::keep) what is left, by group number.
/// Each carries the cursor right behind it. Without a group stage items pass one by one. Where `most_lost`
/// items in a row have lost their message, the next one fails: such a flow might never give anything again.
class Grouper {
 public:
  /// `stage` (may be nullptr) is borrowed.
  Grouper(const Group* stage, const FlowOptions& options, std::int64_t most_lost);

  std::vector<ItemPtr> take(ItemPtr item);

 private:
  void close_group(std::vector<ItemPtr>& members, std::vector<ItemPtr>& out);
  void close_all_groups(std::vector<ItemPtr>& out);
  void give(ItemPtr item, std::vector<ItemPtr>& out);

  const Group* stage_;
  const Partial partial_;
  const std::int64_t ranks_;
  const std::int64_t most_lost_;
  std::int64_t lost_ = 0;  // in a row
  std::vector<std::vector<ItemPtr>> groups_;
  std::int64_t epoch_ = 0;  // of the latest item
  std::int64_t next_;       // Cursor::next
  std::int64_t number_ = 0;
};

}  // namespace millrace
