#include "millrace/report/score_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "millrace/base/text.h"
#include "millrace/page/html.h"
#include "millrace/report/metric_charts.h"

namespace millrace::report {
namespace {

/// Whether it is a score of an evaluation, also of other weights than the trained ones: "bbox/AP50"
/// for `score` "AP50".
bool is_score(const std::string& name, std::string_view score) {
  return name.ends_with(fmt::format("bbox/{}", score)) ||
         name.ends_with(fmt::format("segm/{}", score));
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

/// What a run had cost when the scores of a step became known; nothing: no rate was given.
std::optional<double> price_at(const RunFiles& run, std::int64_t step) {
  if (!run.record.is_object() || !run.record.contains("evaluations")) return std::nullopt;
  for (const auto& evaluation : run.record["evaluations"])
    if (evaluation.is_object() && evaluation.value("step", std::int64_t{-1}) == step &&
        evaluation.contains("price") && evaluation["price"].is_number())
      return evaluation["price"].get<double>();
  return std::nullopt;
}

/// When levels of AP were first reached. The levels are shares of the best AP that all runs reach.
std::string time_to_accuracy(std::span<const RunFiles> runs, const std::string& metric) {
  double common = 1;
  for (const RunFiles& run : runs)
    if (run.metrics.has(metric)) common = std::min(common, best_of(run.metrics.of(metric)));
  if (!(common > 0) || common == 1) return "";
  const bool has_price = std::ranges::any_of(runs, [&](const RunFiles& run) {
    return std::ranges::any_of(run.metrics.of(metric), [&](const MetricValue& one) {
      return price_at(run, one.step).has_value();
    });
  });
  std::vector<page::Column> columns{{"AP"}};
  for (const RunFiles& run : runs) {
    const std::string whose = runs.size() > 1 ? page::escaped(run.name) + ": " : "";
    columns.push_back({whose + "step"});
    columns.push_back({"epoch"});
    columns.push_back({"time"});
    if (has_price) columns.push_back({"price"});
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
      if (!has_price) continue;
      const auto price = at ? price_at(run, at->step) : std::nullopt;
      row.push_back(price ? fmt::format("{:.2f}", *price) : "");
    }
    rows.push_back(std::move(row));
  }
  return fmt::format(
             "<h3>Time to accuracy</h3>\n<p class=\"soft\">The first evaluation whose {} is at "
             "least so high. Time is that of training and evaluation since the start; pauses "
             "between the starts of a resumed run are left out.</p>\n",
             page::escaped(metric)) +
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
    rows.push_back({page::escaped(class_name(class_names, row.id)), percent_or_dash(row.last),
                    percent_or_dash(row.before),
                    row.last >= 0 && row.before >= 0
                        ? fmt::format("{:+.1f}", 100 * (row.last - row.before))
                        : "",
                    percent_or_dash(row.best), spark(row.values)});
  return fmt::format(
             "<details{}><summary>Each class over time ({}, {}, steps {} to {})</summary>\n",
             found.size() <= 20 ? " open" : "", iou == "bbox" ? "boxes" : "masks",
             counted(static_cast<long long>(all.size()), "evaluation"), all.front().step,
             all.back().step) +
         page::table(columns, rows) + "</details>\n";
}

}  // namespace

page::Section score_section(std::span<const RunFiles> runs,
                            const std::map<std::int64_t, std::string>& class_names) {
  const auto scores = [&](std::initializer_list<std::string_view> wanted) {
    return metric_names(runs, [&](const std::string& name) {
      return std::ranges::any_of(wanted, [&](auto score) { return is_score(name, score); });
    });
  };
  const auto main = scores({"AP"});
  if (main.empty())
    return {
        "scores", "Scores over time",
        "<p>No evaluation has ended yet: [callbacks.evaluate] says when the next is due.</p>\n"};
  page::LineChart like{.title = "AP", .x_name = "step", .y_name = "per cent", .factor = 100};
  page::LineChart sizes = like;
  sizes.title = "AP by size of objects";
  const auto by_size = metric_charts(runs, scores({"APs", "APm", "APl"}), sizes);
  std::string out;
  for (const RunFiles& run : runs)
    if (!run.limited.empty())
      out += fmt::format("<p class=\"verdict warning\">{}{}</p>\n",
                         runs.size() > 1 ? page::escaped(run.name) + ": " : "",
                         page::escaped(run.limited));
  if (runs.size() == 1) {
    out += side_by_side(metric_charts(runs, scores({"AP", "AP50", "AP75"}), like) + by_size);
  } else {
    out += side_by_side(metric_charts(runs, main, like));
    out += folded(runs, "AP50, AP75, and AP by size of objects",
                  metric_charts(runs, scores({"AP50", "AP75"}), like) + by_size);
  }
  out += time_to_accuracy(runs, std::ranges::count(main, "bbox/AP") ? "bbox/AP" : main.front());
  for (const RunFiles& run : runs) {
    const std::string classes =
        classes_over_time(run, "bbox", class_names) + classes_over_time(run, "segm", class_names);
    if (!classes.empty()) out += run_heading(runs, run) + classes;
  }
  return {"scores", "Scores over time", std::move(out)};
}

}  // namespace millrace::report
