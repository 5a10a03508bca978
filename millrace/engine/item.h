// What the engine moves from node to node: a message and what is known of it. Internal.
#pragma once

#include <cstdint>
#include <exception>
#include <iterator>
#include <memory>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/message.h"
#include "millrace/engine/order.h"
#include "millrace/engine/skipped_sample.h"

namespace millrace {

/// A sample of a group.
struct Member {
  std::int64_t epoch = 0;
  Turn turn;
};

/// One ticket's worth of work in front of the group stage, what a rank has of a group behind it. An item that
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
  std::vector<Member> members;  // behind a group stage: those that are not lost
  bool end = false;             // nothing follows
  Message message;
  std::exception_ptr failure;
  std::vector<SkippedSample> skipped;  // here
  std::int64_t group = 0;              // number of its planned group
  std::int64_t group_epoch = 0;        // of the group's first member
  bool closes = false;                 // the last of its group on this rank
  Cursor cursor;                       // of one that closes: the place behind the group

  /// That it stands for and that are not lost.
  std::int64_t samples() const { return members.empty() ? 1 : std::ssize(members); }
};

using ItemPtr = std::shared_ptr<Item>;

}  // namespace millrace
