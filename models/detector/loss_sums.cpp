#include "millrace/models/detector/loss_sums.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"

namespace millrace {

Counts counts_of(const LossSums& sums) {
  Counts counts;
  for (const auto& [name, sum, over] : sums) {
    if (!std::isfinite(over.number) || over.number < 0)
      throw Error(fmt::format("the loss '{}' has an invalid count, {} of '{}'", name, over.number,
                              over.name));
    const auto known = std::ranges::find(counts, over.name, &Count::name);
    if (known == counts.end())
      counts.push_back(over);
    else if (known->number != over.number)
      throw Error(fmt::format(
          "the count '{}' is {} and {} in one batch; use a different name for each count",
          over.name, known->number, over.number));
  }
  return counts;
}

Losses divided(const LossSums& sums, const Counts& totals) {
  Losses losses;
  for (const auto& [name, sum, over] : sums) {
    const auto total = std::ranges::find(totals, over.name, &Count::name);
    if (total == totals.end())
      throw Error(
          fmt::format("the loss '{}' is divided by the count '{}', which other batches of the step "
                      "lack; return the same losses for each batch",
                      name, over.name));
    losses.emplace_back(name, sum / (total->number > 0 ? total->number : 1));
  }
  return losses;
}

Losses means_of(const LossSums& sums) { return divided(sums, counts_of(sums)); }

}  // namespace millrace
