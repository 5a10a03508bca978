#include "millrace/trainer/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

using ReportFields = std::tuple<Scalars, std::vector<std::tuple<std::string, double, double>>,
                                std::vector<double>, std::string, std::string>;

ReportFields fields_of(const StepReport& report) {
  ReportFields fields{report.losses, {}, report.measured, report.gradients, report.statistics};
  for (const auto& [name, part, whole] : report.figures)
    std::get<1>(fields).emplace_back(name, part, whole);
  return fields;
}

/// `rank` is that of `fields`.
void add(StepReport& sum, ReportFields& fields, const std::string& rank, const std::string& title) {
  const auto& [losses, figures, measured, gradients, statistics] = fields;
  if (!std::ranges::equal(sum.losses, losses, {}, &Scalars::value_type::first,
                          &Scalars::value_type::first))
    throw Error(fmt::format(
        "{} gave other losses on {} than on the chief: each must give the same ones", title, rank));
  for (std::size_t i = 0; i < losses.size(); ++i) sum.losses[i].second += losses[i].second;
  if (sum.gradients.size() != gradients.size())
    throw Error(fmt::format("{} trains {} parameters, the chief {}", rank, gradients.size(),
                            sum.gradients.size()));
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i] == '1') sum.gradients[i] = '1';
  for (const auto& [name, part, whole] : figures) add(sum.figures, {name, part, whole});
}

}  // namespace

StepReport over_all_ranks(const Cluster& cluster, StepReport mine, const std::string& title) {
  if (cluster.size() == 1) return mine;
  if (!cluster.is_chief()) {
    mine.measured.clear();
    mine.statistics.clear();
  }
  auto all = gather_values(cluster, "losses", fields_of(mine));
  auto& [losses, figures, measured, gradients, statistics] = all[0];
  StepReport sum{losses, {}, measured, gradients, statistics};
  for (const auto& [name, part, whole] : figures) sum.figures.push_back({name, part, whole});
  for (std::int64_t rank = 1; rank < cluster.size(); ++rank)
    add(sum, all[static_cast<std::size_t>(rank)], cluster.name(rank), title);
  return sum;
}

}  // namespace millrace
