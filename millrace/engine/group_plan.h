// Which samples come together, known before any of them is read.
#pragma once

#include <cstdint>
#include <exception>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/order.h"
#include "millrace/engine/sample_keys.h"

namespace millrace {

/// The members of one group over all ranks.
struct PlannedGroup {
  std::int64_t number = 0;              // from the start of the plan on
  std::vector<std::int64_t> positions;  // in the order; none: the flow has ended
  Cursor cursor;                        // after the group
  std::exception_ptr failure;           // the plan cannot go on
};

/// Walks the order that all ranks share and gives the groups in the order in which they become
/// full; with Partial::keep also, by key, what is left where an epoch ends. A pure function of its
/// arguments: it is the same for whoever asks, on any rank. Copies go on from the same place.
class GroupPlan {
 public:
  /// Groups of `size` members, that of all ranks together. `order` and `keys` are borrowed.
  GroupPlan(const Order& order, SampleKeys& keys, const FlowOptions& options, std::int64_t size);

  /// The next group; from the end or a failure on always that.
  PlannedGroup next();

  /// The number of the group that comes next.
  std::int64_t number() const { return number_; }
  /// Positions passed by, since a filter does not want their samples.
  std::int64_t filtered() const { return filtered_; }

 private:
  PlannedGroup walk();
  PlannedGroup give(std::vector<std::int64_t>& members);
  std::int64_t key_at(std::int64_t position);
  void check_not_endless();
  Cursor here() const;

  const Order* order_;
  SampleKeys* keys_;
  Partial partial_;
  std::int64_t size_;
  std::int64_t past_;                // first position of no epoch
  std::vector<std::int64_t> again_;  // those that the start left open
  std::size_t taken_again_ = 0;
  std::int64_t next_;       // Cursor::next
  std::int64_t epoch_ = 0;  // that of the latest member
  std::int64_t number_ = 0;
  std::int64_t filtered_ = 0, filtered_in_a_row_ = 0;
  std::vector<std::vector<std::int64_t>> waiting_;  // half-filled groups, by key
  std::exception_ptr failure_;
};

}  // namespace millrace
