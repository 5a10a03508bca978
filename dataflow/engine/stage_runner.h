// Runs stages on items: counts, times, handles faults by the flow's policy. Starts no threads.
#pragma once

#include <atomic>
#include <deque>
#include <span>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/dataflow/engine/item.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/plan.h"
#include "millrace/dataflow/engine/stage.h"

namespace millrace {

/// What one stage has done; written by all threads, each on its own cache line.
struct alignas(64) StageCounter {
  std::atomic<std::int64_t> items = 0, busy_ns = 0, waiting = 0;
};

/// What one thread works on; written by that thread alone. A reader may see a mixture while the
/// thread moves on, not while it is stuck.
struct alignas(64) WorkSlot {
  std::atomic<std::int64_t> began_ns = 0;  // of the steady clock; 0: idle
  std::atomic<std::int64_t> stage = 0, sample = 0;
};

/// Thread-safe: any number of items at once.
class StageRunner {
 public:
  /// `plan` and `order` are borrowed.
  StageRunner(const Plan& plan, const Order& order, const FlowOptions& options);

  /// Runs stage `k` on an item of these samples, unless it has lost its message or `k` is before
  /// its first stage. `worker`, 0 .. threads-1, is the calling thread. Never throws.
  void run(std::size_t k, Item& item, std::span<const Place> samples, std::size_t worker);

  /// An item begins to wait for stage `k`, or ends. Counts only.
  void arrive(std::size_t k) { counters_[k].waiting.fetch_add(1, std::memory_order_relaxed); }
  void leave(std::size_t k) { counters_[k].waiting.fetch_sub(1, std::memory_order_relaxed); }
  void count(std::size_t k, std::int64_t busy_ns);

  /// Gives a group that lost its message on the way the message of the next usable sample of the
  /// order, or a failure if many in a row are unusable. Never throws.
  void refill(GroupItem& group) const;

  std::int64_t filtered() const { return filtered_; }
  std::vector<StageReport> report() const;
  std::vector<StageWork> in_work() const;

 private:
  std::string name_of(std::size_t k, std::int64_t sample) const;
  GroupPlace group_place(const Item& item) const;
  Message apply(std::size_t k, Message message, std::int64_t epoch, const Turn& turn,
                const GroupPlace& group) const;
  Message make(std::size_t stages, std::int64_t epoch, const Turn& turn,
               const GroupPlace& group) const;
  std::size_t stages_of_partners(std::size_t k) const;
  Message partner(std::size_t stages, std::int64_t epoch, Rng& rng) const;
  void leave_out(std::size_t k, Item& item, std::span<const Place> samples, const char* why) const;
  std::int64_t others_tried() const;
  void replace(std::size_t k, Item& item) const;

  const Plan& plan_;
  const std::vector<Stage>& stages_;  // of the plan
  const Order& order_;
  const std::uint64_t seed_;
  const OnError on_error_;
  const Share share_;
  const std::int64_t group_size_;            // over all ranks, if all groups are full; else 0
  const std::size_t group_;                  // the group stage; none: after the last
  const Cache* cache_ = nullptr;             // may be nullptr
  std::size_t after_cache_ = 0;              // the first stage after it
  std::vector<std::uint64_t> random_names_;  // by stage: how many before it change something
  std::atomic<std::int64_t> filtered_ = 0;
  std::deque<StageCounter> counters_;
  std::deque<WorkSlot> slots_;  // by worker
};

}  // namespace millrace
