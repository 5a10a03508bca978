// Records the samples that a flow has skipped. Internal.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// Counts skipped samples, each once per epoch; stores and logs the first few reasons; throws if
/// there are too many. Written in the order of the flow, so that the same flow always fails at the
/// same place; readable from any thread.
class SkipLedger {
 public:
  /// Allows up to `budget` skipped samples per epoch.
  explicit SkipLedger(std::int64_t budget) : budget_(budget) {}

  /// Throws Error if the epoch exceeds its budget.
  void record(const SkippedSample& skipped);
  /// Sets the fields of `report` for skipped samples.
  void report(FlowReport& report) const;

 private:
  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::int64_t skipped_ = 0;
  std::map<std::int64_t, std::set<std::uint64_t>> places_;  // by epoch, for the last few epochs
  std::set<std::int64_t> warned_;                           // samples that were logged
  std::vector<std::string> reasons_;
};

}  // namespace millrace
