// The one loop over validation data. It can be cancelled while it waits for them.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// Flows of cancelled passes. Destroying one waits for the sample that it reads, which may hang:
/// that is done last, with a timeout. Any thread may add one.
class CancelledFlows {
 public:
  void add(std::unique_ptr<DataFlow<Batch>> flow) {
    const std::scoped_lock lock(mutex_);
    flows_.push_back(std::move(flow));
  }
  void destroy_all() { flows_.clear(); }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<DataFlow<Batch>>> flows_;
};

struct PassWatch {
  /// Asked often, also while waiting for data.
  std::function<bool()> cancelled = [] { return false; };
  /// Called after each batch.
  std::function<void()> moves = [] {};
  /// Receives the flow of a cancelled pass; nullptr: it is destroyed at once.
  CancelledFlows* leftovers = nullptr;
};

/// Gives each batch to `take` until that returns false or the flow ends. False if it was cancelled.
inline bool go_through(std::unique_ptr<DataFlow<Batch>> flow, const PassWatch& watch,
                       const std::function<bool(const Batch&)>& take) {
  constexpr auto kCancelPeriod = std::chrono::milliseconds(50);
  for (;;) {
    if (watch.cancelled()) {
      if (watch.leftovers) watch.leftovers->add(std::move(flow));
      return false;
    }
    if (!flow->is_ready(kCancelPeriod)) continue;
    const auto batch = flow->next();
    if (!batch) return true;
    const bool wants_more = take(batch->value);
    watch.moves();
    if (!wants_more) return true;
  }
}

}  // namespace millrace
