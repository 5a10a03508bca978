// The items that move between the engine's nodes: a message with its metadata. Internal.
//
// An item without a message (skipped, failed, or the end mark) still passes all nodes, since the
// sequencers wait for its number; its tickets are given back at the end.
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

/// The common part of samples and groups.
struct Item {
  std::int64_t number = 0;      // sequence number: 0, 1, 2, ...
  Place at;                     // the sample's place, or that of a group's first member
  std::size_t first_stage = 0;  // first stage to run; > 0 if a cache contains the sample
  Message message;
  std::exception_ptr failure;
  std::vector<SkippedSample> skipped;         // samples skipped while making it
  std::size_t bytes = 0;                      // its bytes of the flow's memory
  std::shared_ptr<const PlannedGroup> group;  // the planned group; one without members marks the
                                              // end
};

/// A sample before the group stage. It holds one ticket.
struct SampleItem : Item {
  bool closes = false;  // last of its group on this rank
};

/// One rank's part of a group, after the group stage.
struct GroupItem : Item {
  std::vector<Place> members;  // members that still have a message
  std::int64_t tickets = 0;    // tickets that it holds
};

using SamplePtr = std::shared_ptr<SampleItem>;
using GroupPtr = std::shared_ptr<GroupItem>;

}  // namespace millrace
