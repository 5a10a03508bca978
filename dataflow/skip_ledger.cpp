#include "dataflow/skip_ledger.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"

namespace millrace {
namespace {

constexpr std::size_t kReasonsKept = 8;

}  // namespace

void SkipLedger::record(std::int64_t epoch, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  ++skipped_;
  if (epoch > epoch_) {
    epoch_ = epoch;
    skipped_in_epoch_ = 0;
  }
  if (reasons_.size() < kReasonsKept) {
    reasons_.push_back(reason);
    spdlog::warn("left out: {}", reason);
    if (reasons_.size() == kReasonsKept) spdlog::warn("more that is left out is only counted");
  }
  if (++skipped_in_epoch_ > budget_)
    throw Error(
        fmt::format("{} of epoch {} cannot be used, more than the {} that max_skipped allows; "
                    "the last: {}",
                    counted(skipped_in_epoch_, "sample"), epoch_, budget_, reason));
}

void SkipLedger::report(FlowReport& report) const {
  const std::lock_guard lock(mutex_);
  report.skipped = skipped_;
  report.skipped_reasons = reasons_;
}

}  // namespace millrace
