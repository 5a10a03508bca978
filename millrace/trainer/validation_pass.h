// The one loop over batches of validation data: a request to stop is heard also while it waits for
// them.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "millrace/dataflow/detection/sample.h"
#include "millrace/engine/dataflow.h"

namespace millrace {

/// Flows of passes that were cancelled. Destroying one waits for the sample that it is reading,
/// which may hang: so that is done last of all, within a limit. Any thread may add one.
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

/// How a pass is watched.
struct PassWatch {
  /// Asked often, also while data are waited for.
  std::function<bool()> cancelled = [] { return false; };
  /// Called after each batch.
  std::function<void()> moves = [] {};
  /// Receives the flow of a pass that was cancelled; nullptr: it is destroyed at once.
  CancelledFlows* leftovers = nullptr;
};

/// Gives each batch to `take` until that returns false or the flow ends. Returns false where the
/// pass was cancelled.
bool go_through(std::unique_ptr<DataFlow<Batch>> flow, const PassWatch& watch,
                const std::function<bool(const Batch&)>& take);

}  // namespace millrace
