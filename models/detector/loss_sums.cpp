#include "millrace/models/detector/loss_sums.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"

namespace millrace {

LossDivisors counts_of(const LossSums& sums) {
  LossDivisors counts;
  for (const auto& [name, sum, divisor] : sums) {
    if (!std::isfinite(divisor.number) || divisor.number < 0)
      throw Error(fmt::format("the loss '{}' has an invalid count, {} of '{}'", name,
                              divisor.number, divisor.name));
    const auto known = std::ranges::find(counts, divisor.name, &LossDivisor::name);
    if (known == counts.end())
      counts.push_back(divisor);
    else if (known->number != divisor.number)
      throw Error(fmt::format(
          "the count '{}' is {} and {} in one batch; use a different name for each count",
          divisor.name, known->number, divisor.number));
  }
  return counts;
}

Losses divided(const LossSums& sums, const LossDivisors& totals) {
  Losses losses;
  for (const auto& [name, sum, divisor] : sums) {
    const auto total = std::ranges::find(totals, divisor.name, &LossDivisor::name);
    if (total == totals.end())
      throw Error(
          fmt::format("the loss '{}' is divided by the count '{}', which other batches of the step "
                      "lack; return the same losses for each batch",
                      name, divisor.name));
    losses.emplace_back(name, sum / (total->number > 0 ? total->number : 1));
  }
  return losses;
}

Losses means_of(const LossSums& sums) { return divided(sums, counts_of(sums)); }

}  // namespace millrace
