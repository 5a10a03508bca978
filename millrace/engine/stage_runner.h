// Runs stages on items: counts, times, and treats faults by the flow's policy. No threads here.
#pragma once

#include <atomic>
#include <deque>
#include <span>
#include <vector>

#include "millrace/engine/dataflow.h"
#include "millrace/engine/item.h"
#include "millrace/engine/order.h"
#include "millrace/engine/plan.h"
#include "millrace/engine/stage.h"

namespace millrace {

/// What one stage has done; written by all threads, each on its own cache line.
struct alignas(64) StageCounter {
  std::atomic<std::int64_t> items = 0, busy_ns = 0, waiting = 0;
};

/// What one thread works on; written by that thread alone. What moves on while somebody reads may
/// be told wrong; what is stuck is not.
struct alignas(64) WorkSlot {
  std::atomic<std::int64_t> began_ns = 0;  // of the steady clock; 0: on nothing
  std::atomic<std::int64_t> stage = 0, sample = 0;
};

/// Thread-safe: any number of items at once.
class StageRunner {
 public:
  /// `plan` and `order` are borrowed.
  StageRunner(const Plan& plan, const Order& order, const FlowOptions& options);

  /// Puts the item through stage `k`, unless it has lost its message already or a cache had what
  /// comes after it. `worker`, 0 .. threads-1, is the thread that calls. Never throws.
  void run(std::size_t k, SampleItem& sample, std::size_t worker);
  void run(std::size_t k, GroupItem& group, std::size_t worker);

  /// An item has come to wait for stage `k`, and has left it. Counts only.
  void arrive(std::size_t k) { counters_[k].waiting.fetch_add(1, std::memory_order_relaxed); }
  void leave(std::size_t k) { counters_[k].waiting.fetch_sub(1, std::memory_order_relaxed); }
  void count(std::size_t k, std::int64_t busy_ns);

  /// Gives a group that has been through all stages and has lost its message that of the next
  /// usable sample of the order, or a failure where many in a row are not. Never throws.
  void refill(GroupItem& group) const;

  std::int64_t filtered() const { return filtered_; }
  std::vector<StageReport> report() const;
  std::vector<StageWork> in_work() const;

 private:
  template <class Begin>
  void run(std::size_t k, Item& item, std::span<const Place> samples, std::size_t worker,
           Begin begin);
  void enter(SampleItem& sample) const;
  Message apply(std::size_t k, Message message, std::int64_t epoch, const Turn& turn) const;
  Message apply_mix(std::size_t k, const Mix& mix, Message message, std::int64_t epoch,
                    const Turn& turn, Rng& rng) const;
  Message make(std::size_t stages, std::int64_t epoch, const Turn& turn) const;
  Message partner(std::size_t stages, std::int64_t epoch, Rng& rng) const;
  std::string name_of(std::size_t k, std::int64_t sample) const;
  void leave_out(std::size_t k, Item& item, std::span<const Place> samples, const char* why) const;
  std::int64_t others_tried() const;
  void replace(std::size_t k, Item& item) const;

  const Plan& plan_;
  const std::vector<Stage>& stages_;  // of the plan
  const Order& order_;
  const std::uint64_t seed_;
  const OnError on_error_;
  std::size_t group_;                        // where the group stage stands; none: after all
  const Cache* cache_;                       // nullptr: none
  std::size_t after_cache_;                  // the first stage whose work a cache does not spare
  std::vector<std::uint64_t> random_names_;  // by stage: how many before it change something
  std::atomic<std::int64_t> filtered_ = 0;
  std::deque<StageCounter> counters_;
  std::deque<WorkSlot> slots_;  // by worker
};

}  // namespace millrace
