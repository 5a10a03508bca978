// What the engine moves from node to node: a message and what is known of it. Internal.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "dataflow/dataflow.h"
#include "dataflow/message.h"
#include "dataflow/order.h"

namespace millrace {

/// One ticket's worth of work in front of the group stage, a whole group's behind it. An item that
/// has lost its message (left out, failed, or the mark of the end) still goes the whole way, since
/// the sequencers wait for its number; every ticket comes back at the end of the line.
struct Item {
  std::int64_t number =
      0;  // place in the line: 0, 1, 2, ... in front of the group stage and again behind
  std::int64_t position = 0;
  std::int64_t epoch = 0;
  Turn turn;                    // behind the group stage, of the first member
  std::size_t first_stage = 0;  // that has work for it: what a cache has spares the stages in front
  std::int64_t tickets = 1;     // that come back with it
  bool end = false;             // nothing follows
  Message message;
  std::exception_ptr failure;
  std::vector<std::string> skipped;  // why samples were left out here
  Cursor cursor;                     // behind the group stage: the place behind this item
};

using ItemPtr = std::shared_ptr<Item>;

}  // namespace millrace
