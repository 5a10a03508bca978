// Where items come from: hands out one position after the other, first those that a cursor left open.
#pragma once

#include <mutex>

#include "dataflow/flow_options.h"
#include "dataflow/item.h"
#include "dataflow/order.h"

namespace millrace {

/// Thread-safe.
class SourceLine {
 public:
  /// `order` is borrowed.
  SourceLine(const Order& order, const FlowOptions& options);

  /// The next item, the mark of the end behind the last, then nullptr.
  ItemPtr next();
  /// From now on there is no next item.
  void stop();

 private:
  const Order& order_;
  const std::int64_t stride_;
  const std::int64_t past_;  // first position of no epoch
  std::mutex mutex_;
  Cursor here_;
  std::size_t reissued_ = 0;  // of here_.pending
  std::int64_t number_ = 0;
  bool ended_ = false;
};

/// The first position at or behind `position` that `rank` of `ranks` takes.
inline std::int64_t align(std::int64_t position, std::int64_t rank, std::int64_t ranks) {
  return position + ((rank - position) % ranks + ranks) % ranks;
}

}  // namespace millrace
