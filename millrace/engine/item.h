// What the engine moves from node to node: a message and what is known of it. Internal.
//
// An item that has lost its message (left out, failed, or the mark of the end) still goes the whole
// way, since the sequencers wait for its number; every ticket comes back at the end of the line.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/group_plan.h"
#include "millrace/engine/message.h"
#include "millrace/engine/order.h"

namespace millrace {

/// Where a sample stands in the order.
struct Place {
  std::int64_t position = 0;
  std::int64_t epoch = 0;
  Turn turn;
};

/// What samples and groups have in common.
struct Item {
  std::int64_t number = 0;  // place in the line: 0, 1, 2, ...
  Place at;                 // of the sample; of a group's first member
  Message message;
  std::exception_ptr failure;
  std::vector<SkippedSample> skipped;         // here
  std::shared_ptr<const PlannedGroup> group;  // its own; one without members marks the end
};

/// A sample before the group stage: one ticket's worth of work.
struct SampleItem : Item {
  std::size_t first_stage = 0;  // that has work for it: a cache that has it spares those before
  bool closes = false;          // the last of its group on this rank
};

/// What a rank has of a group, after the group stage.
struct GroupItem : Item {
  std::vector<Place> members;  // that are not lost
  std::int64_t tickets = 0;    // that come back with it
};

using SamplePtr = std::shared_ptr<SampleItem>;
using GroupPtr = std::shared_ptr<GroupItem>;

}  // namespace millrace
