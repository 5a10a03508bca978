#include "millrace/report/metric_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "millrace/page/html.h"

namespace millrace::report {
namespace {

page::Series series_of(const RunFiles& run, const std::string& metric, std::string name, int colour,
                       int dash) {
  page::Series series{std::move(name), {}, colour, dash};
  for (const MetricValue& one : run.metrics.of(metric))
    series.points.push_back({static_cast<double>(one.step), one.value});
  return series;
}

}  // namespace

std::vector<std::string> metric_names(std::span<const RunFiles> runs,
                                      const std::function<bool(const std::string&)>& wanted) {
  std::set<std::string> all;
  for (const RunFiles& run : runs)
    for (const auto& [name, values] : run.metrics.by_name)
      if (wanted(name)) all.insert(name);
  return {all.begin(), all.end()};
}

std::string metric_charts(std::span<const RunFiles> runs, const std::vector<std::string>& metrics,
                          const page::LineChart& like) {
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(runs, [&](const RunFiles& run) { return run.metrics.has(name); });
  };
  std::vector<std::string> there;
  for (const std::string& name : metrics)
    if (has(name)) there.push_back(name);
  if (there.empty()) return "";
  std::string out;
  if (runs.size() == 1) {
    page::LineChart chart = like;
    for (const std::string& name : there) {
      const auto i = static_cast<int>(chart.series.size());
      chart.series.push_back(series_of(runs[0], name, name, i, i / 8));
    }
    return page::line_chart(chart);
  }
  for (const std::string& name : there) {
    page::LineChart chart = like;
    chart.title = name;
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (runs[r].metrics.has(name))
        chart.series.push_back(
            series_of(runs[r], name, runs[r].name, static_cast<int>(r), static_cast<int>(r % 4)));
    out += page::line_chart(chart);
  }
  return out;
}

std::string side_by_side(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"pair\">\n" + charts + "</div>\n";
}

std::string folded(std::span<const RunFiles> runs, std::string_view what,
                   const std::string& charts) {
  if (runs.size() == 1 || charts.empty()) return side_by_side(charts);
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", what, side_by_side(charts));
}

std::string run_heading(std::span<const RunFiles> runs, const RunFiles& run) {
  return runs.size() > 1 ? fmt::format("<h3>{}</h3>\n", page::escaped(run.name)) : "";
}

std::string percent_or_dash(double share) {
  return share < 0 || std::isnan(share) ? "&ndash;" : fmt::format("{:.1f}", 100 * share);
}

}  // namespace millrace::report
