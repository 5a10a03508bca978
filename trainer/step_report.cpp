#include "millrace/trainer/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/base/tree_sum.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

using ReportFields = std::tuple<Scalars, std::vector<std::tuple<std::string, double, double>>,
                                std::vector<double>, std::string, std::string, bool>;

ReportFields fields_of(const StepReport& report) {
  ReportFields fields{report.losses,     {},
                      report.measured,   report.gradients,
                      report.statistics, report.statistics_alone};
  for (const auto& [name, part, whole] : report.figures)
    std::get<1>(fields).emplace_back(name, part, whole);
  return fields;
}

StepReport report_of(ReportFields& fields) {
  auto& [losses, figures, measured, gradients, statistics, alone] = fields;
  StepReport report{losses, {}, measured, gradients, statistics, alone};
  for (const auto& [name, part, whole] : figures) report.figures.push_back({name, part, whole});
  return report;
}

}  // namespace

StepReport over_all_ranks(const Cluster& cluster, std::vector<StepReport> mine,
                          const std::string& title) {
  if (!cluster.is_chief()) {
    mine[0].measured.clear();
    mine[0].statistics.clear();
  }
  std::vector<ReportFields> own;
  for (const auto& report : mine) own.push_back(fields_of(report));
  auto all = gather_values(cluster, "losses", own);

  const auto& chiefs = all[0][0];
  std::vector<ReportFields*> leaves;
  std::string gradients = std::get<3>(chiefs);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const auto name = cluster.name(static_cast<std::int64_t>(rank));
    const auto& theirs = std::get<3>(all[rank][0]);
    if (theirs.size() != gradients.size())
      throw Error(fmt::format("{} trains {} parameters, the chief {}", name, theirs.size(),
                              gradients.size()));
    for (std::size_t i = 0; i < theirs.size(); ++i)
      if (theirs[i] == '1') gradients[i] = '1';
    for (auto& fields : all[rank]) {
      if (!std::ranges::equal(std::get<0>(chiefs), std::get<0>(fields), {},
                              &Scalars::value_type::first, &Scalars::value_type::first))
        throw Error(fmt::format(
            "{} gave other losses on {} than on the chief: each must give the same ones", title,
            name));
      leaves.push_back(&fields);
    }
  }
  auto sum = tree_sum(
      leaves.size(), [&](std::size_t i) { return report_of(*leaves[i]); },
      [](StepReport total, const StepReport& more) {
        for (std::size_t i = 0; i < total.losses.size(); ++i)
          total.losses[i].second += more.losses[i].second;
        for (const auto& figure : more.figures) add(total.figures, figure);
        total.statistics_alone |= more.statistics_alone;
        return total;
      });
  sum.gradients = std::move(gradients);
  return sum;
}

}  // namespace millrace
