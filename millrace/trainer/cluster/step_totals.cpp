#include "millrace/trainer/cluster/step_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "millrace/base/errors.h"

namespace millrace {

double StepTotals::sum(std::string_view name, double local) {
  const bool is_first_asked = part_ == std::min<std::size_t>(1, parts_ - 1);
  auto found = shares_.find(name);
  if (found == shares_.end()) {
    if (are_known_ || !is_first_asked)
      throw Error(
          fmt::format("{} asks for the total '{}' in some micro-batches only; it must ask for the "
                      "same ones in each",
                      title_, name));
    found = shares_.emplace(name, std::vector<double>(parts_)).first;
  }
  auto& shares = found->second;
  if (!are_known_) {
    const auto [own, is_first] = asked_.emplace(name, local);
    if (is_first)
      shares[part_] = cluster_.sum(name, {&local, 1})[0];
    else if (own->second != local)
      throw Error(
          fmt::format("{} asks for the total '{}' of {} and of {} in one batch; each needs a name "
                      "of its own",
                      title_, name, own->second, local));
    if (part_ > 0) return shares[part_];
  }
  return std::accumulate(shares.begin(), shares.end(), 0.0);
}

void StepTotals::complete() {
  if (shares_.empty())
    throw Error(
        title_ +
        " cannot be trained in parts: its losses are divided by no StepInfo::total, so those of "
        "micro-batches and of ranks would not add up to the large batch's; set "
        "optimizer.accumulate = 1 and start one process alone");
  are_known_ = true;
}

}  // namespace millrace
