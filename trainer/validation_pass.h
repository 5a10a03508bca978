// The loop over validation data, which can be cancelled while it waits for data.
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

/// Holds the flows of cancelled passes. Destroying a flow waits for the sample that it is reading,
/// which may hang, so it is done at the end of the training, with a timeout. add() is thread-safe.
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

/// Hooks of a pass over validation data.
struct PassWatch {
  /// Called often, also while waiting for data.
  std::function<bool()> cancelled = [] { return false; };
  /// Called after each batch.
  std::function<void()> report_progress = [] {};
  /// Receives the flow of a cancelled pass; nullptr = the flow is destroyed at once.
  CancelledFlows* leftovers = nullptr;
};

/// Passes each batch to `take` until that returns false or the flow ends. Returns false if the pass
/// was cancelled.
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
    watch.report_progress();
    if (!wants_more) return true;
  }
}

}  // namespace millrace
