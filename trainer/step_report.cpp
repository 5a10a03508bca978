#include "millrace/trainer/step_report.h"

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

}  // namespace millrace
