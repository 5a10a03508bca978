// The account of samples that a flow has left out.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "millrace/engine/dataflow.h"

namespace millrace {

/// Counts what is left out, once an epoch however often it is met, keeps and logs the reasons of
/// the first few samples, and says when it is too much. Written in the order of the flow, so that
/// the same flow always ends at the same place; read from any thread.
class SkipLedger {
 public:
  /// `budget`: turns of samples that one epoch may leave out.
  explicit SkipLedger(std::int64_t budget) : budget_(budget) {}

  /// Throws Error where the epoch's budget is spent.
  void record(const SkippedSample& skipped);
  /// Fills in the report's share.
  void report(FlowReport& report) const;

 private:
  void warn_once(const SkippedSample& skipped);

  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::int64_t skipped_ = 0;
  std::map<std::int64_t, std::set<std::uint64_t>> places_;  // by epoch: of the last few
  std::set<std::int64_t> warned_;                           // samples
  std::vector<std::string> reasons_;
};

}  // namespace millrace
