#include "millrace/trainer/step_report.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/trainer/cluster/gather_values.h"

namespace millrace {
namespace {

using ReportFields = std::tuple<Scalars, std::vector<std::tuple<std::string, double, double>>,
                                std::string, std::string>;

ReportFields fields_of(const StepReport& report) {
  ReportFields fields{report.losses, {}, report.gradients, report.statistics};
  for (const auto& [name, part, whole] : report.figures)
    std::get<1>(fields).emplace_back(name, part, whole);
  return fields;
}

StepReport report_of(ReportFields& fields) {
  auto& [losses, figures, gradients, statistics] = fields;
  StepReport report{std::move(losses), {}, std::move(gradients), std::move(statistics)};
  for (auto& [name, part, whole] : figures)
    report.figures.push_back({std::move(name), part, whole});
  return report;
}

void add(StepReport& sum, const StepReport& more, const std::string& rank,
         const std::string& title) {
  bool same = sum.losses.size() == more.losses.size();
  for (std::size_t i = 0; same && i < sum.losses.size(); ++i) {
    same = sum.losses[i].first == more.losses[i].first;
    sum.losses[i].second += more.losses[i].second;
  }
  if (!same)
    throw Error(fmt::format(
        "{} gave other losses on {} than on the chief: each must give the same ones", title, rank));
  if (sum.gradients.size() != more.gradients.size())
    throw Error(fmt::format("{} trains {} parameters, the chief {}", rank, more.gradients.size(),
                            sum.gradients.size()));
  for (const auto& figure : more.figures) add(sum.figures, figure);
  for (std::size_t i = 0; i < sum.gradients.size(); ++i)
    if (more.gradients[i] == '1') sum.gradients[i] = '1';
}

}  // namespace

StepReport over_all_ranks(const Cluster& cluster, StepReport mine, const std::string& title) {
  if (cluster.size() == 1) return mine;
  if (!cluster.is_chief()) mine.statistics.clear();
  auto all = gather_values(cluster, "losses", fields_of(mine));
  auto sum = report_of(all[0]);
  for (std::int64_t rank = 1; rank < cluster.size(); ++rank)
    add(sum, report_of(all[static_cast<std::size_t>(rank)]), cluster.name(rank), title);
  return sum;
}

}  // namespace millrace
