// Runs map stages on items: counts, times, and treats faults by the flow's policy. No threads here.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <vector>

#include "base/errors.h"
#include "dataflow/flow_options.h"
#include "dataflow/item.h"
#include "dataflow/order.h"
#include "dataflow/stage.h"

namespace millrace {

/// What one stage has done; written by all threads, each on its own cache line.
struct alignas(64) StageCounter {
  std::atomic<std::int64_t> items = 0, busy_ns = 0, waiting = 0;
};

/// Thread-safe: any number of items at once.
class StageRunner {
 public:
  /// `stages` is borrowed.
  StageRunner(const std::vector<Stage>& stages, const Order& order, const FlowOptions& options);

  /// Puts the item through stage `k`, unless it has lost its message already. Never throws.
  void run(std::size_t k, Item& item);

  /// An item has come to stand in front of stage `k`, and has left it. Counts only.
  void arrive(std::size_t k) { counters_[k].waiting.fetch_add(1, std::memory_order_relaxed); }
  void leave(std::size_t k) { counters_[k].waiting.fetch_sub(1, std::memory_order_relaxed); }
  void count(std::size_t k, std::int64_t busy_ns);

  std::vector<StageReport> report() const;

 private:
  Message apply(std::size_t k, Message message, const Item& item, std::int64_t index) const;
  void leave_out(std::size_t k, Item& item, const DataError& error) const;
  void replace(std::size_t k, Item& item) const;

  const std::vector<Stage>& stages_;
  const Order order_;
  const std::uint64_t seed_;
  const OnError on_error_;
  std::size_t group_;  // where the group stage stands; none: behind all
  std::deque<StageCounter> counters_;
};

}  // namespace millrace
