// The account of samples that a flow has left out.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "dataflow/dataflow.h"

namespace millrace {

/// Counts what is left out, keeps and logs the first few reasons, and says when it is too much. Written
/// in the order of the flow, so that the same flow always ends at the same place; read from any thread.
class SkipLedger {
 public:
  /// `budget`: samples that one epoch may leave out.
  explicit SkipLedger(std::int64_t budget) : budget_(budget) {}

  /// Throws Error where the epoch's budget is spent.
  void record(std::int64_t epoch, const std::string& reason);
  /// Fills in the report's share.
  void report(FlowReport& report) const;

 private:
  const std::int64_t budget_;
  mutable std::mutex mutex_;
  std::int64_t skipped_ = 0;
  std::int64_t epoch_ = 0, skipped_in_epoch_ = 0;
  std::vector<std::string> reasons_;
};

}  // namespace millrace
