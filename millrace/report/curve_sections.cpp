#include "millrace/report/curve_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "millrace/base/text.h"
#include "millrace/page/charts.h"
#include "millrace/page/html.h"

namespace millrace::report {
namespace {

using page::escaped;
using page::LineChart;
using page::Series;

Series series_of(const RunFiles& run, const std::string& metric, std::string name, int colour,
                 int dash) {
  Series series{std::move(name), {}, colour, dash};
  for (const MetricValue& one : run.metrics.of(metric))
    series.points.push_back({static_cast<double>(one.step), one.value});
  return series;
}

/// Names of metrics that any run has and `wanted` takes.
template <class Wanted>
std::vector<std::string> names(std::span<const RunFiles> runs, const Wanted& wanted) {
  std::set<std::string> all;
  for (const RunFiles& run : runs)
    for (const auto& [name, values] : run.metrics.by_name)
      if (wanted(name)) all.insert(name);
  return {all.begin(), all.end()};
}

/// Of one run a chart with a line for each metric; of several a chart for each metric with a line
/// for each run.
std::string charts(std::span<const RunFiles> runs, const std::vector<std::string>& metrics,
                   const LineChart& like) {
  const auto has = [&](const std::string& name) {
    return std::ranges::any_of(runs, [&](const RunFiles& run) { return run.metrics.has(name); });
  };
  std::vector<std::string> there;
  for (const std::string& name : metrics)
    if (has(name)) there.push_back(name);
  if (there.empty()) return "";
  std::string out;
  if (runs.size() == 1) {
    LineChart chart = like;
    for (const std::string& name : there) {
      const auto i = static_cast<int>(chart.series.size());
      chart.series.push_back(series_of(runs[0], name, name, i, i / 8));
    }
    return page::line_chart(chart);
  }
  for (const std::string& name : there) {
    LineChart chart = like;
    chart.title = name;
    for (std::size_t r = 0; r < runs.size(); ++r)
      if (runs[r].metrics.has(name))
        chart.series.push_back(
            series_of(runs[r], name, runs[r].name, static_cast<int>(r), static_cast<int>(r % 4)));
    out += page::line_chart(chart);
  }
  return out;
}

/// Charts beside each other where there is room.
std::string pair(const std::string& charts) {
  return charts.empty() ? "" : "<div class=\"pair\">\n" + charts + "</div>\n";
}

/// The same; folded where several runs have a chart for each metric.
std::string folded(std::span<const RunFiles> runs, std::string_view what,
                   const std::string& charts) {
  if (runs.size() == 1 || charts.empty()) return pair(charts);
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", what, pair(charts));
}

bool is_loss(const std::string& name) {
  return name.starts_with("loss") || name.starts_with("val/");
}

/// Whether it is a score of an evaluation, also of other weights than the trained ones: "bbox/AP50"
/// for `score` "AP50".
bool is_score(const std::string& name, std::string_view score) {
  return name.ends_with(fmt::format("bbox/{}", score)) ||
         name.ends_with(fmt::format("segm/{}", score));
}

std::string head(std::span<const RunFiles> runs, const RunFiles& run) {
  return runs.size() > 1 ? fmt::format("<h3>{}</h3>\n", escaped(run.name)) : "";
}

std::string percent_text(double share) {
  return share < 0 || std::isnan(share) ? "&ndash;" : fmt::format("{:.1f}", 100 * share);
}

/// The first value that reaches a level; nothing: none does.
std::optional<MetricValue> first_at(const std::vector<MetricValue>& values, double level) {
  const auto at =
      std::ranges::find_if(values, [&](const MetricValue& one) { return one.value >= level; });
  return at == values.end() ? std::nullopt : std::optional(*at);
}

double best_of(const std::vector<MetricValue>& values) {
  double best = -1;
  for (const MetricValue& one : values) best = std::max(best, one.value);  // NaN never
  return best;
}

/// When levels of AP were first reached. The levels are shares of the best AP that all runs reach.
std::string time_to_accuracy(std::span<const RunFiles> runs, const std::string& metric) {
  double common = 1;
  for (const RunFiles& run : runs)
    if (run.metrics.has(metric)) common = std::min(common, best_of(run.metrics.of(metric)));
  if (!(common > 0) || common == 1) return "";
  std::vector<page::Column> columns{{"AP"}};
  for (const RunFiles& run : runs) {
    const std::string whose = runs.size() > 1 ? escaped(run.name) + ": " : "";
    columns.push_back({whose + "step"});
    columns.push_back({"epoch"});
    columns.push_back({"time"});
  }
  std::vector<std::vector<std::string>> rows;
  for (const double share : {.5, .75, .9, .95, 1.}) {
    std::vector<std::string> row{
        fmt::format("{:.1f} <span class=\"soft\">({:.0f} % of the best{})</span>",
                    100 * share * common, 100 * share, runs.size() > 1 ? " that all reach" : "")};
    for (const RunFiles& run : runs) {
      const auto at = first_at(run.metrics.of(metric), share * common);
      const double seconds = at ? trained_seconds(run, at->time) : 0;
      row.push_back(at ? fmt::format("{}", at->step) : "&ndash;");
      row.push_back(at ? fmt::format("{:.2f}", at->epoch) : "");
      row.push_back(seconds > 0 ? duration_text(seconds) : "");
    }
    rows.push_back(std::move(row));
  }
  return fmt::format(
             "<h3>Time to accuracy</h3>\n<p class=\"soft\">The first evaluation whose {} is at "
             "least so high. Time is that of training and evaluation since the start; pauses "
             "between the starts of a resumed run are left out.</p>\n",
             escaped(metric)) +
         page::table(columns, rows, "narrow");
}

/// A small curve of shares, the highest at the top.
std::string spark(const std::vector<double>& values) {
  double most = .01;
  for (const double value : values) most = std::max(most, value);
  std::string out =
      "<svg class=\"small\" viewBox=\"0 0 50 18\" aria-hidden=\"true\"><polyline points=\"";
  for (std::size_t i = 0; i < values.size(); ++i)
    out += fmt::format("{:.1f},{:.1f} ",
                       values.size() == 1
                           ? 25.
                           : 50. * static_cast<double>(i) / static_cast<double>(values.size() - 1),
                       17 - 16 * std::max(0., values[i]) / most);
  return out + "\"/></svg>";
}

std::string class_name(const std::map<std::int64_t, std::string>& class_names, std::int64_t id) {
  const auto at = class_names.find(id);
  return at == class_names.end() ? fmt::format("category {}", id) : at->second;
}

std::string classes_over_time(const RunFiles& run, const std::string& iou,
                              const std::map<std::int64_t, std::string>& class_names) {
  const auto at = run.class_scores.find(iou);
  if (at == run.class_scores.end() || at->second.size() < 2) return "";
  const auto& all = at->second;
  struct Row {
    std::int64_t id;
    double last, before, best;
    std::vector<double> values;
  };
  std::vector<Row> found;
  for (const auto& [id, last] : all.back().ap) {
    Row row{id, last, -1, -1, {}};
    for (const ClassScores& one : all) {
      const auto value = one.ap.find(id);
      row.values.push_back(value == one.ap.end() ? -1 : value->second);
      row.best = std::max(row.best, row.values.back());
    }
    row.before = row.values[row.values.size() - 2];
    if (row.best >= 0) found.push_back(std::move(row));
  }
  std::ranges::stable_sort(found, {}, &Row::last);
  const std::vector<page::Column> columns{{"class"},  {"AP now"}, {"one evaluation before"},
                                          {"change"}, {"best"},   {"over time", true}};
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : found)
    rows.push_back(
        {escaped(class_name(class_names, row.id)), percent_text(row.last), percent_text(row.before),
         row.last >= 0 && row.before >= 0 ? fmt::format("{:+.1f}", 100 * (row.last - row.before))
                                          : "",
         percent_text(row.best), spark(row.values)});
  return fmt::format(
             "<details{}><summary>Each class over time ({}, {}, steps {} to {})</summary>\n",
             found.size() <= 20 ? " open" : "", iou == "bbox" ? "boxes" : "masks",
             counted(static_cast<long long>(all.size()), "evaluation"), all.front().step,
             all.back().step) +
         page::table(columns, rows) + "</details>\n";
}

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

page::Section loss_section(std::span<const RunFiles> runs) {
  auto losses = names(runs, is_loss);
  std::string out;
  if (losses.empty()) {
    out = "<p>No losses yet: the first line of metrics.jsonl brings them.</p>\n";
    return {"losses", "Losses", out};
  }
  const LineChart like{
      .title = "Losses", .x_name = "step", .y_name = "loss", .logarithmic_too = true};
  const auto norm = charts(runs, {"gradient_norm"},
                           {.title = "Norm of the gradient",
                            .x_name = "step",
                            .y_name = "norm",
                            .logarithmic_too = true});
  const auto rate =
      charts(runs, {"lr"}, {.title = "Learning rate", .x_name = "step", .y_name = "rate"});
  if (runs.size() == 1) {
    out += pair(charts(runs, losses, like) + rate + norm);
  } else {
    std::erase(losses, "loss");
    out += pair(charts(runs, {"loss"}, like) + rate);
    out +=
        folded(runs, "Each loss, and the norm of the gradient", charts(runs, losses, like) + norm);
  }
  for (const RunFiles& run : runs) {
    const auto& bad = run.metrics.of("bad_steps");
    if (!bad.empty() && bad.back().value > 0)
      out += fmt::format(
          "<p class=\"verdict warning\">{}: {:.0f} steps had a gradient that is not "
          "finite and changed nothing.</p>\n",
          escaped(run.name), bad.back().value);
  }
  return {"losses", "Losses", std::move(out)};
}

page::Section score_section(std::span<const RunFiles> runs,
                            const std::map<std::int64_t, std::string>& class_names) {
  const auto scores = [&](std::initializer_list<std::string_view> wanted) {
    return names(runs, [&](const std::string& name) {
      return std::ranges::any_of(wanted, [&](auto score) { return is_score(name, score); });
    });
  };
  const auto main = scores({"AP"});
  if (main.empty())
    return {
        "scores", "Scores over time",
        "<p>No evaluation has ended yet: [callbacks.evaluate] says when the next is due.</p>\n"};
  LineChart like{.title = "AP", .x_name = "step", .y_name = "per cent", .factor = 100};
  LineChart sizes = like;
  sizes.title = "AP by size of objects";
  const auto by_size = charts(runs, scores({"APs", "APm", "APl"}), sizes);
  std::string out;
  if (runs.size() == 1) {
    out += pair(charts(runs, scores({"AP", "AP50", "AP75"}), like) + by_size);
  } else {
    out += pair(charts(runs, main, like));
    out += folded(runs, "AP50, AP75, and AP by size of objects",
                  charts(runs, scores({"AP50", "AP75"}), like) + by_size);
  }
  out += time_to_accuracy(runs, std::ranges::count(main, "bbox/AP") ? "bbox/AP" : main.front());
  for (const RunFiles& run : runs) {
    const std::string classes =
        classes_over_time(run, "bbox", class_names) + classes_over_time(run, "segm", class_names);
    if (!classes.empty()) out += head(runs, run) + classes;
  }
  return {"scores", "Scores over time", std::move(out)};
}

page::Section speed_section(std::span<const RunFiles> runs) {
  const auto rate = charts(runs, {"time/images_per_s"},
                           {.title = "Images per second", .x_name = "step", .y_name = "images/s"});
  const auto parts = charts(
      runs, {"time/data_wait_s", "time/step_s", "time/sync_s", "time/callbacks_s"},
      {.title = "Seconds per step", .x_name = "step", .y_name = "s", .logarithmic_too = true});
  std::string went;
  for (const RunFiles& run : runs) {
    const std::string bars = where_time_went(run);
    if (!bars.empty()) went += "<div>" + head(runs, run) + bars + "</div>\n";
  }
  const auto memory = names(runs, [](const std::string& name) {
    return name.starts_with("time/") && name.ends_with("_mib");
  });
  const auto devices =
      charts(runs, memory, {.title = "Memory", .x_name = "step", .y_name = "MiB"}) +
      charts(runs, names(runs, [](const std::string& name) { return name.ends_with("_busy"); }),
             {.title = "GPUs busy", .x_name = "step", .y_name = "per cent", .factor = 100});
  std::string out;
  if (runs.size() == 1)
    out = pair(rate + parts + went + devices);
  else
    out = pair(rate + went) + folded(runs, "Seconds per step", parts) + pair(devices);
  if (out.empty()) out = "<p>No rates yet: the first line of metrics.jsonl brings them.</p>\n";
  if (memory.empty()) {
    std::string peaks;
    for (const RunFiles& run : runs) {
      const auto& start = run.last_start();
      if (!start.contains("ended") || !start["ended"].contains("peak_memory_mib")) continue;
      peaks += fmt::format(" {} used {:.0f} MiB at its peak.", escaped(run.name),
                           start["ended"]["peak_memory_mib"].get<double>());
    }
    out += fmt::format(
        "<p class=\"soft\">Memory was not measured step by step: "
        "[callbacks.resources] does.{}</p>\n",
        peaks);
  }
  return {"speed", "Speed and memory", std::move(out)};
}

page::Section head_section(std::span<const RunFiles> runs) {
  // "box/accuracy" belongs to "box"; counts have a chart of their own
  std::map<std::pair<std::string, bool>, std::vector<std::string>> groups;
  for (const std::string& name : names(runs, [](const std::string& one) {
         return one.find('/') != std::string::npos && !one.starts_with("time/") &&
                !one.starts_with("val/") && one.find("bbox/") == std::string::npos &&
                one.find("segm/") == std::string::npos;
       })) {
    bool counts = false;
    for (const RunFiles& run : runs)
      for (const MetricValue& one : run.metrics.of(name)) counts |= one.value > 1.5;
    groups[{name.substr(0, name.find('/')), counts}].push_back(name);
  }
  if (groups.empty()) return {};
  std::string out =
      "<details><summary>Accuracies, recall and counts of the heads</summary>\n"
      "<div class=\"pair\">\n";
  for (const auto& [group, metrics] : groups)
    out += charts(runs, metrics,
                  {.title = group.first + (group.second ? ", counts" : ", shares"),
                   .x_name = "step",
                   .y_name = group.second ? "count" : "share"});
  return {"heads", "Heads", out + "</div></details>\n"};
}

}  // namespace millrace::report
