// Assembles the members of planned groups. Internal.
#pragma once

#include <vector>

#include "millrace/dataflow/engine/item.h"
#include "millrace/dataflow/engine/stage.h"

namespace millrace {

/// Takes samples in order, from one thread at a time. One rank's members of a group are consecutive
/// and leave as one item, without those that lost their message; the item fails if one of them
/// failed. Without a group stage each sample is a group. If more than `most_lost` samples in a row
/// lost their message, the next one fails, since such a flow might never yield an item.
class Grouper {
 public:
  /// Borrows `stage` (may be nullptr).
  Grouper(const Group* stage, std::int64_t most_lost) : stage_(stage), most_lost_(most_lost) {}

  /// Returns the group that the sample closes, or nullptr.
  GroupPtr take(SamplePtr sample);

 private:
  const Group* stage_;
  const std::int64_t most_lost_;
  std::int64_t lost_ = 0;  // samples in a row
  std::vector<SamplePtr> members_;
  std::int64_t number_ = 0;
};

}  // namespace millrace
