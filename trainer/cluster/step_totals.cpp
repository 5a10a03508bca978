#include "millrace/trainer/cluster/step_totals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"
#include "millrace/models/detector/loss_sums.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

using Names = std::vector<std::string>;

Names names_of(const LossDivisors& counts) {
  Names names;
  for (const auto& count : counts) names.push_back(count.name);
  return names;
}

/// Throws Error if two batches of a step, named in the message, have counts of different names.
void check_same(const std::string& title, const Names& first, const std::string& whose_first,
                const Names& other, const std::string& whose_other) {
  if (first == other) return;
  throw Error(
      fmt::format("{} returned losses over [{}] for {}, but over [{}] for {}; every batch of a "
                  "step must have the same losses, 0 if it has no objects",
                  title, fmt::join(first, ", "), whose_first, fmt::join(other, ", "), whose_other));
}

double tree_of(std::size_t count, const auto& number_of) {
  return tree_sum(count, [&](std::size_t i) -> double { return number_of(i); });
}

}  // namespace

LossDivisors StepTotals::sum_of(const std::vector<LossDivisors>& group) const {
  auto sum = group.front();
  for (const auto& own : group)
    check_same(title_, names_of(sum), "one micro-batch", names_of(own), "another");
  for (std::size_t name = 0; name < sum.size(); ++name)
    sum[name].number = tree_of(group.size(), [&](std::size_t i) { return group[i][name].number; });
  return sum;
}

void StepTotals::complete(const std::vector<LossDivisors>& first) {
  groups_.front() = sum_of(first);
  std::vector<std::tuple<Names, std::vector<double>>> mine;
  for (const auto& group : groups_) {
    std::vector<double> numbers;
    for (const auto& count : group) numbers.push_back(count.number);
    mine.emplace_back(names_of(group), numbers);
  }
  const auto all = gather_values(cluster_, "counts of the losses", mine);

  const auto& names = std::get<0>(all[0][0]);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() != mine.size())
      throw Error(title_ + ": the ranks have different numbers of micro-batches in this step");
    for (const auto& [own, numbers] : all[rank])
      check_same(title_, names, "a batch of " + cluster_.name(0), own,
                 "one of " + cluster_.name(static_cast<std::int64_t>(rank)));
  }
  for (std::size_t name = 0; name < names.size(); ++name) {
    double total = 0;
    for (std::size_t group = 0; group < mine.size(); ++group) {
      const auto of_group = tree_of(
          all.size(), [&](std::size_t rank) { return std::get<1>(all[rank][group])[name]; });
      total = group == 0 ? of_group : total + of_group;
    }
    totals_.push_back({names[name], total});
  }
}

Losses StepTotals::means(const LossSums& sums) const try {
  return divided(sums, totals_);
} catch (const Error& problem) {
  throw Error(title_ + ": " + problem.what());
}

}  // namespace millrace
