// What the engine moves from node to node: a message and what is known about it. Internal.
//
// An item without a message (skipped, failed, or the end mark) still goes through all nodes, since
// the sequencers wait for its number; every ticket is given back at the end.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/group_plan.h"
#include "millrace/dataflow/engine/message.h"
#include "millrace/dataflow/engine/order.h"

namespace millrace {

/// The place of a sample in the order.
struct Place {
  std::int64_t position = 0;
  std::int64_t epoch = 0;
  Turn turn;
};

/// What samples and groups have in common.
struct Item {
  std::int64_t number = 0;      // place in the line: 0, 1, 2, ...
  Place at;                     // of the sample, or of a group's first member
  std::size_t first_stage = 0;  // to run: a cache that has the sample saves those before
  Message message;
  std::exception_ptr failure;
  std::vector<SkippedSample> skipped;         // on the way
  std::size_t bytes = 0;                      // that it has of the flow's memory
  std::shared_ptr<const PlannedGroup> group;  // its own; one without members marks the end
};

/// A sample before the group stage. It holds one ticket.
struct SampleItem : Item {
  bool closes = false;  // the last of its group on this rank
};

/// One rank's part of a group, after the group stage.
struct GroupItem : Item {
  std::vector<Place> members;  // those not lost
  std::int64_t tickets = 0;    // that it holds
};

using SamplePtr = std::shared_ptr<SampleItem>;
using GroupPtr = std::shared_ptr<GroupItem>;

}  // namespace millrace
