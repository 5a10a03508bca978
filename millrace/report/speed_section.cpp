#include "millrace/report/speed_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/page/charts.h"
#include "millrace/page/html.h"
#include "millrace/report/metric_charts.h"

namespace millrace::report {
namespace {

/// Seconds of a whole training in each part of its steps, by windows of the metrics.
std::string where_time_went(const RunFiles& run) {
  std::map<std::int64_t, double> steps;  // of the window that ends with a step
  std::int64_t before = 0;
  for (const MetricValue& one : run.metrics.of("time/step_s")) {
    steps[one.step] += static_cast<double>(one.step - before);
    before = one.step;
  }
  const auto total = [&](const std::string& name) {
    double seconds = 0;
    for (const MetricValue& one : run.metrics.of(name))
      if (const auto window = steps.find(one.step); window != steps.end() && one.value > 0)
        seconds += one.value * window->second;
    return seconds;
  };
  const double step = total("time/step_s"), sync = total("time/sync_s");
  struct Part {
    std::string name;
    double seconds;
  };
  std::vector<Part> parts{{"waiting for data", total("time/data_wait_s")},
                          {"steps", step - sync},
                          {"waiting for other ranks", sync}};
  double named = 0;
  for (const auto& [name, values] : run.metrics.by_name) {
    constexpr std::string_view kPrefix = "time/callbacks/";
    if (!name.starts_with(kPrefix)) continue;
    const std::string callback = name.substr(kPrefix.size(), name.size() - kPrefix.size() - 2);
    parts.push_back({"callback " + callback, total(name)});
    named += parts.back().seconds;
  }
  parts.push_back({"other callbacks", std::max(0., total("time/callbacks_s") - named)});
  double all = 0;
  for (const Part& part : parts) all += part.seconds;
  if (!(all > 0)) return "";
  std::vector<page::Bar> bars;
  for (const Part& part : parts)
    if (part.seconds > 0)
      bars.push_back({part.name, part.seconds, fmt::format("{:.1f} %", 100 * part.seconds / all),
                      duration_text(part.seconds)});
  return fmt::format(
      "<figure><figcaption class=\"title\">Where the time went</figcaption>{}"
      "</figure>\n",
      page::bar_chart(bars, "Share of the training's time in each of its parts"));
}

}  // namespace

page::Section speed_section(std::span<const RunFiles> runs) {
  const auto rate =
      metric_charts(runs, {"time/images_per_s"},
                    {.title = "Images per second", .x_name = "step", .y_name = "images/s"});
  const auto parts = metric_charts(
      runs, {"time/data_wait_s", "time/step_s", "time/sync_s", "time/callbacks_s"},
      {.title = "Seconds per step", .x_name = "step", .y_name = "s", .logarithmic_too = true});
  std::string went;
  for (const RunFiles& run : runs) {
    const std::string bars = where_time_went(run);
    if (!bars.empty()) went += "<div>" + run_heading(runs, run) + bars + "</div>\n";
  }
  const auto memory = metric_names(runs, [](const std::string& name) {
    return name.starts_with("time/") && name.ends_with("_mib");
  });
  const auto devices =
      metric_charts(runs, memory, {.title = "Memory", .x_name = "step", .y_name = "MiB"}) +
      metric_charts(
          runs, metric_names(runs, [](const std::string& name) { return name.ends_with("_busy"); }),
          {.title = "GPUs busy", .x_name = "step", .y_name = "per cent", .factor = 100});
  std::string out;
  if (runs.size() == 1)
    out = side_by_side(rate + parts + went + devices);
  else
    out =
        side_by_side(rate + went) + folded(runs, "Seconds per step", parts) + side_by_side(devices);
  if (out.empty()) out = "<p>No rates yet: the first line of metrics.jsonl brings them.</p>\n";
  if (memory.empty()) {
    std::string peaks;
    for (const RunFiles& run : runs) {
      const double most = peak_memory_mib(run);
      if (most > 0)
        peaks += fmt::format(" {} used {:.0f} MiB at its peak.", page::escaped(run.name), most);
    }
    out += fmt::format(
        "<p class=\"soft\">Memory was not measured step by step: "
        "[callbacks.resources] does.{}</p>\n",
        peaks);
  }
  return {"speed", "Speed and memory", std::move(out)};
}

}  // namespace millrace::report
