// Runs stages on items: counts, measures time, applies the fault policy. Starts no threads.
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

/// Counters of one stage, written by all threads; each stage has its own cache line.
struct alignas(64) StageCounter {
  std::atomic<std::int64_t> items = 0, busy_ns = 0, waiting = 0;
};

/// The work of one thread, written by that thread alone. A reader may see inconsistent fields while
/// the thread moves on, but not while it is stuck.
struct alignas(64) WorkSlot {
  std::atomic<std::int64_t> began_ns = 0;  // steady clock; 0 = idle
  std::atomic<std::int64_t> stage = 0, sample = 0;
};

/// Runs stages on any number of items at once. Thread-safe.
class StageRunner {
 public:
  /// Borrows `plan` and `order`.
  StageRunner(const Plan& plan, const Order& order, const FlowOptions& options);

  /// Runs stage `k` on an item of these samples, unless the item has lost its message or its first
  /// stage is after `k`. `worker`, 0 .. threads-1, is the calling thread. Never throws.
  void run(std::size_t k, Item& item, std::span<const Place> samples, std::size_t worker);

  /// Counts an item that starts (arrive) or stops (leave) waiting for stage `k`.
  void arrive(std::size_t k) { counters_[k].waiting.fetch_add(1, std::memory_order_relaxed); }
  void leave(std::size_t k) { counters_[k].waiting.fetch_sub(1, std::memory_order_relaxed); }
  void count(std::size_t k, std::int64_t busy_ns);

  /// Gives a group that lost its message the message of the next usable sample of the order, or a
  /// failure if many in a row are unusable. Never throws.
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
  std::int64_t replacement_tries() const;
  void replace(std::size_t k, Item& item) const;

  const Plan& plan_;
  const std::vector<Stage>& stages_;  // stages of the plan
  const Order& order_;
  const std::uint64_t seed_;
  const OnError on_error_;
  const Share share_;
  const std::int64_t group_size_;            // over all ranks if all groups are full; else 0
  const std::size_t group_;                  // index of the group stage, or stages_.size()
  const Cache* cache_ = nullptr;             // may be nullptr
  std::size_t after_cache_ = 0;              // index of the first stage after the cache
  std::vector<std::uint64_t> random_names_;  // by stage: count of earlier stages with an effect
  std::atomic<std::int64_t> filtered_ = 0;
  std::deque<StageCounter> counters_;
  std::deque<WorkSlot> slots_;  // by worker
};

}  // namespace millrace
