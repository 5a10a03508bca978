#include "millrace/trainer/step_report.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
inline auto members(MetricSums& sums) { return std::tie(sums.name, sums.part, sums.whole); }

inline auto members(StepReport& report) {
  return std::tie(report.losses, report.metrics, report.measured, report.gradients,
                  report.statistics, report.statistics_alone);
}

StepReport over_all_ranks(const Cluster& cluster, std::vector<StepReport> mine,
                          const std::string& title) {
  if (!cluster.is_chief()) {
    mine[0].measured.clear();
    mine[0].statistics.clear();
  }
  const auto all = gather_values(cluster, "losses", mine);

  const auto& chiefs = all[0][0];
  std::vector<const StepReport*> leaves;
  auto gradients = chiefs.gradients;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto name = cluster.name(static_cast<std::int64_t>(rank));
    const auto& theirs = all[rank][0].gradients;
    if (theirs.size() != gradients.size())
      throw Error(fmt::format("{} trains {} parameters, rank 0 trains {}", name, theirs.size(),
                              gradients.size()));
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (theirs[i] == '1') gradients[i] = '1';
    for (const auto& report : all[rank]) {
      if (!std::ranges::equal(chiefs.losses, report.losses, {}, &Scalars::value_type::first,
                              &Scalars::value_type::first))
        throw Error(fmt::format(
            "{} returned other losses on {} than on rank 0; all ranks must return the same ones",
            title, name));
      leaves.push_back(&report);
    }
  }
  auto sum = tree_sum(
      leaves.size(), [&](std::size_t i) { return *leaves[i]; },
      [](StepReport total, const StepReport& more) {
        for (std::size_t i = 0; i < total.losses.size(); ++i)
          total.losses[i].second += more.losses[i].second;
        for (const auto& metric : more.metrics) add(total.metrics, metric);
        total.statistics_alone |= more.statistics_alone;
        return total;
      });
  sum.gradients = std::move(gradients);
  return sum;
}

void StepNumbers::add(std::size_t number, const Losses& losses) {
  for (const auto& [name, loss] : losses)
    losses_[number].emplace_back(name, loss.detach().reshape({}));
  count_.store(losses.size());
}

void StepNumbers::queue(const at::Tensor& measured, const at::Tensor& moved) {
  std::vector<at::Tensor> all;
  for (const auto& own : losses_)
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own.size() % count() != 0 || own[i].first != losses_[0][i % count()].first)
        throw Error(title_ + " returned different losses for two batches of a step");
      all.push_back(own[i].second);
    }
  decisive_ = at::stack(all);
  if (measured.numel() > 0) decisive_ = at::cat({decisive_, measured});
  std::vector<at::Tensor> more;
  for (const auto& own : metrics_)
    for (const auto& number : own.numbers())
      if (is_there(number)) more.push_back(number);
  if (moved.defined()) more.push_back(moved);
  numbers_.emplace(more.empty() ? decisive_ : at::cat({decisive_, at::stack(more)}));
}

at::Tensor StepNumbers::bad() const { return (decisive_ * 0).sum().ne(0).to(at::kFloat); }

std::pair<std::vector<StepReport>, bool> StepNumbers::read() {
  std::vector<StepReport> reports(losses_.size());
  const auto all = numbers_->get();
  auto next = all.begin();
  for (std::size_t number = 0; number < reports.size(); ++number)
    for (std::size_t i = 0; i < losses_[number].size(); ++i) {
      auto& own = reports[number].losses;
      if (i < count()) own.emplace_back(losses_[number][i].first, 0);
      own[i % count()].second += *next++;
    }
  const auto end = all.begin() + static_cast<std::ptrdiff_t>(decisive_.numel());
  reports[0].measured.assign(next, end);
  next = end;
  for (std::size_t number = 0; number < metrics_.size(); ++number) {
    std::vector<double> values;
    for (const auto& value : metrics_[number].numbers())
      values.push_back(is_there(value) ? *next++ : value.item<double>());
    reports[number].metrics = metrics_[number].sums(values.data());
  }
  return {std::move(reports), next != all.end() && *next != 0};
}

}  // namespace millrace
