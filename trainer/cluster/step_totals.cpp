#include "millrace/trainer/cluster/step_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/text.h"
#include "millrace/base/tree_sum.h"
#include "millrace/models/detector/loss_sums.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
inline auto members(LossDivisor& count) { return std::tie(count.name, count.number); }

namespace {

std::string names_of(const LossDivisors& counts) {
  std::vector<std::string> names;
  for (const auto& count : counts) names.push_back(count.name);
  return joined(names);
}

/// Throws Error if two batches of a step, named in the message, have counts of different names.
void check_same(const std::string& title, const LossDivisors& first, const std::string& whose_first,
                const LossDivisors& other, const std::string& whose_other) {
  if (std::ranges::equal(first, other, {}, &LossDivisor::name, &LossDivisor::name)) return;
  throw Error(
      fmt::format("{} returned losses over [{}] for {}, but over [{}] for {}; every batch of a "
                  "step must have the same losses, 0 if it has no objects",
                  title, names_of(first), whose_first, names_of(other), whose_other));
}

double tree_of(std::size_t count, const auto& number_of) {
  return tree_sum(count, [&](std::size_t i) -> double { return number_of(i); });
}

}  // namespace

LossDivisors StepTotals::sum_of(const std::vector<LossDivisors>& group) const {
  auto sum = group.front();
  for (const auto& own : group) check_same(title_, sum, "one micro-batch", own, "another");
  for (std::size_t name = 0; name < sum.size(); ++name)
    sum[name].number = tree_of(group.size(), [&](std::size_t i) { return group[i][name].number; });
  return sum;
}

void StepTotals::complete(const std::vector<LossDivisors>& first) {
  groups_.front() = sum_of(first);
  const auto all = gather_values(cluster_, "counts of the losses", groups_);
  totals_ = all[0][0];
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != groups_.size())
      throw Error(title_ + ": the ranks have different numbers of micro-batches in this step");
    for (const auto& own : all[rank])
      check_same(title_, totals_, "a batch of " + cluster_.name(0), own,
                 "one of " + cluster_.name(static_cast<std::int64_t>(rank)));
  }
  for (std::size_t name = 0; name < totals_.size(); ++name)
    for (std::size_t group = 0; group < groups_.size(); ++group) {
      const auto of_group =
          tree_of(all.size(), [&](std::size_t rank) { return all[rank][group][name].number; });
      auto& total = totals_[name].number;
      total = group == 0 ? of_group : total + of_group;
    }
}

Losses StepTotals::means(const LossSums& sums) const try {
  return divided(sums, totals_);
} catch (const Error& problem) {
  throw Error(title_ + ": " + problem.what());
}

}  // namespace millrace
