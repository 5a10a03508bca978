#include "trainer/loss_totals.h"

#include <fmt/format.h>

#include "base/errors.h"

namespace millrace {

double MicroBatchTotals::sum(std::string_view name, double local) {
  if (are_known_) {
    if (const auto found = sums_.find(name); found != sums_.end()) return found->second;
    throw Error(
        fmt::format("the detector asks for the total '{}' in some micro-batches only; it "
                    "must ask for the same ones in each",
                    name));
  }
  sums_[std::string(name)] += local;
  return local;
}

void MicroBatchTotals::end_first_pass() {
  if (sums_.empty())
    throw Error(
        "this detector cannot accumulate: its losses are divided by no StepInfo::total, so those "
        "of micro-batches would not add up to the large batch's; set optimizer.accumulate = 1");
  are_known_ = true;
}

}  // namespace millrace
