#include "millrace/trainer/cluster/step_totals.h"

#include <fmt/format.h>

#include "millrace/base/errors.h"

namespace millrace {

double StepTotals::sum(std::string_view name, double local) {
  if (are_known_) {
    if (const auto found = sums_.find(name); found != sums_.end()) return found->second;
    throw Error(
        fmt::format("{} asks for the total '{}' in some micro-batches only; it must ask for the "
                    "same ones in each",
                    title_, name));
  }
  const auto over_ranks = cluster_.sum(name, {&local, 1})[0];
  sums_[std::string(name)] += over_ranks;
  return over_ranks;
}

void StepTotals::end_first_pass() {
  if (sums_.empty())
    throw Error(
        title_ +
        " cannot be trained in parts: its losses are divided by no StepInfo::total, so those of "
        "micro-batches and of ranks would not add up to the large batch's; set "
        "optimizer.accumulate = 1 and start one process alone");
  are_known_ = true;
}

}  // namespace millrace
