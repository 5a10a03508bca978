#include "millrace/trainer/cluster/step_totals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"

namespace millrace {

double StepTotals::sum(std::string_view name, std::span<const double> locals) {
  const auto tree = [](std::span<const double> all) {
    return tree_sum(all.size(), [&](std::size_t i) { return all[i]; });
  };
  const auto of_ranks = [&](const std::vector<double>& own) {
    return tree(cluster_.numbers(name, std::vector{tree(own)}));
  };
  return combined(name, locals, of_ranks, std::plus<>());
}

double StepTotals::largest(std::string_view name, std::span<const double> locals) {
  const auto of_ranks = [&](const std::vector<double>& own) {
    return std::ranges::max(cluster_.numbers(name, std::vector{std::ranges::max(own)}));
  };
  return combined(name, locals, of_ranks, [](double a, double b) { return std::max(a, b); });
}

double StepTotals::combined(std::string_view name, std::span<const double> locals,
                            const std::function<double(const std::vector<double>&)>& over_ranks,
                            const std::function<double(double, double)>& over_parts) {
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
    const std::vector<double> given(locals.begin(), locals.end());
    const auto [own, is_first] = asked_.emplace(name, given);
    if (is_first)
      shares[part_] = over_ranks(given);
    else if (own->second != given)
      throw Error(
          fmt::format("{} asks for the total '{}' of {} and of {} in one batch; each needs a name "
                      "of its own",
                      title_, name, fmt::join(own->second, ", "), fmt::join(given, ", ")));
    if (part_ > 0) return shares[part_];
  }
  return std::accumulate(shares.begin() + 1, shares.end(), shares.front(), over_parts);
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
