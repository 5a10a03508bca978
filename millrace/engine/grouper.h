// Puts the members of planned groups together.
#pragma once

#include <vector>

#include "millrace/engine/item.h"
#include "millrace/engine/stage.h"

namespace millrace {

/// Takes samples in order, one thread at a time. What a rank has of a group comes in a row, and
/// leaves as one item: smaller by the members that have lost their message, failed where one of
/// them has. Without a group stage each sample is a group. Where `most_lost` samples in a row have
/// lost their message, the next one fails: such a flow might never give anything again.
class Grouper {
 public:
  /// `stage` (may be nullptr) is borrowed.
  Grouper(const Group* stage, std::int64_t most_lost) : stage_(stage), most_lost_(most_lost) {}

  /// The group that the sample closes; nullptr where it closes none.
  GroupPtr take(SamplePtr sample);

 private:
  GroupPtr close();

  const Group* stage_;
  const std::int64_t most_lost_;
  std::int64_t lost_ = 0;  // in a row
  std::vector<SamplePtr> members_;
  std::int64_t number_ = 0;
};

}  // namespace millrace
