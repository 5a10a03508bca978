// The account of samples that a flow has skipped. Internal.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "millrace/dataflow/engine/dataflow.h"

namespace millrace {

/// Counts skipped samples, each once per epoch, keeps and logs the reasons for the first few, and
/// throws if there are too many. Written in the order of the flow, so that the same flow always
/// ends at the same place; read from any thread.
class SkipLedger {
 public:
  /// `budget`: how many one epoch may skip.
  explicit SkipLedger(std::int64_t budget) : budget_(budget) {}

  /// Throws Error if the epoch exceeds its budget.
  void record(const SkippedSample& skipped);
  /// Fills in the report's share.
  void report(FlowReport& report) const;

 private:
  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::int64_t skipped_ = 0;
  std::map<std::int64_t, std::set<std::uint64_t>> places_;  // by epoch: of the last few
  std::set<std::int64_t> warned_;                           // samples
  std::vector<std::string> reasons_;
};

}  // namespace millrace
