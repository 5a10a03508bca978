#include "millrace/dataflow/engine/skip_ledger.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"

namespace millrace {
namespace {

constexpr std::size_t kReasonsKept = 8;
// A group may contain samples of two epochs, and groups of other keys may still wait for the older.
constexpr std::size_t kEpochsKept = 4;

}  // namespace

void SkipLedger::record(const SkippedSample& skipped) {
  const std::lock_guard lock(mutex_);
  auto& places = places_[skipped.epoch];
  if (!places.insert(skipped.place).second) return;
  ++skipped_;
  if (reasons_.size() < kReasonsKept && warned_.insert(skipped.sample).second) {
    reasons_.push_back(skipped.why);
    log_warning("skipped: {}", skipped.why);
    if (reasons_.size() == kReasonsKept)
      log_warning("further skipped samples are counted but not logged");
  }
  if (std::ssize(places) > budget_)
    throw Error(fmt::format(
        "{} of epoch {} are unusable, more than the {} that max_skipped allows; the last: {}",
        counted(std::ssize(places), "sample"), skipped.epoch, budget_, skipped.why));
  if (places_.size() > kEpochsKept) places_.erase(places_.begin());
}

void SkipLedger::report(FlowReport& report) const {
  const std::lock_guard lock(mutex_);
  report.skipped = skipped_;
  report.skipped_reasons = reasons_;
}

}  // namespace millrace
