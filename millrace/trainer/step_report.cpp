#include "millrace/trainer/step_report.h"

#include <fmt/format.h>

#include <msgpack.hpp>
#include <tuple>

#include "millrace/base/errors.h"

namespace millrace {
namespace {

using Fields = std::tuple<Scalars, std::vector<std::tuple<std::string, double, double>>,
                          std::string, std::string>;

std::string packed(const StepReport& report) {
  Fields fields{report.losses, {}, report.gradients, report.statistics};
  for (const auto& [name, part, whole] : report.figures)
    std::get<1>(fields).emplace_back(name, part, whole);
  msgpack::sbuffer bytes;
  msgpack::pack(bytes, fields);
  return {bytes.data(), bytes.size()};
}

StepReport unpacked(const std::string& bytes) {
  Fields fields;
  msgpack::unpack(bytes.data(), bytes.size()).get().convert(fields);
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
  const auto all = cluster.gather("losses", packed(mine));
  auto sum = unpacked(all[0]);
  for (std::int64_t rank = 1; rank < cluster.size(); ++rank)
    add(sum, unpacked(all[static_cast<std::size_t>(rank)]), cluster.name(rank), title);
  return sum;
}

}  // namespace millrace
