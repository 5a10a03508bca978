#include "millrace/coco/evaluation/summary.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <tuple>

#include "millrace/coco/evaluation/numpy_sum.h"

namespace millrace::coco {
namespace {

/// The definition of one metric. `limit` is a number of detections.
struct Figure {
  std::string name;
  bool precision;
  std::optional<double> threshold;  // nullopt = all
  std::string_view area;            // name of an area range
  std::uint32_t limit;
  char frequency = 0;  // restricts the metric to categories of this frequency; 0 = all
};

std::vector<Figure> figures_of_keypoints() {
  constexpr std::uint32_t kLimit = 20;  // pycocotools uses 20 for any limits
  std::vector<Figure> figures;
  for (const bool precision : {true, false})
    for (const auto& [name, threshold, area] : {std::tuple("", std::optional<double>(), "all"),
                                                {"50", .5, "all"},
                                                {"75", .75, "all"},
                                                {"m", {}, "medium"},
                                                {"l", {}, "large"}})
      figures.push_back(
          {(precision ? "AP" : "AR") + std::string(name), precision, threshold, area, kLimit});
  return figures;
}

std::vector<Figure> figures_of_lvis(std::uint32_t limit) {
  std::vector<Figure> figures = {
      {"AP", true, {}, "all", limit},       {"AP50", true, .5, "all", limit},
      {"AP75", true, .75, "all", limit},    {"APs", true, {}, "small", limit},
      {"APm", true, {}, "medium", limit},   {"APl", true, {}, "large", limit},
      {"APr", true, {}, "all", limit, 'r'}, {"APc", true, {}, "all", limit, 'c'},
      {"APf", true, {}, "all", limit, 'f'}, {"AR", false, {}, "all", limit},
      {"ARs", false, {}, "small", limit},   {"ARm", false, {}, "medium", limit},
      {"ARl", false, {}, "large", limit}};
  for (Figure& figure : figures)
    if (!figure.precision) figure.name += fmt::format("@{}", limit);
  return figures;
}

std::vector<Figure> figures(const Evaluation& e) {
  const auto& limits = e.max_detections;
  const auto limit = [&](std::size_t i) { return limits[std::min(i, limits.size() - 1)]; };
  if (e.federated) return figures_of_lvis(limit(0));
  if (e.iou == IouType::keypoints) return figures_of_keypoints();
  const std::uint32_t most = e.of_largest ? limits.back() : limit(2);
  const std::uint32_t usual =
      e.of_largest || limits.size() < 3 ? most : 100;  // pycocotools uses 100
  std::vector<Figure> figures = {{"", true, {}, "all", usual},     {"", true, .5, "all", most},
                                 {"", true, .75, "all", most},     {"", true, {}, "small", most},
                                 {"", true, {}, "medium", most},   {"", true, {}, "large", most},
                                 {"", false, {}, "all", limit(0)}, {"", false, {}, "all", limit(1)},
                                 {"", false, {}, "all", limit(2)}, {"", false, {}, "small", most},
                                 {"", false, {}, "medium", most},  {"", false, {}, "large", most}};
  for (std::size_t i = 0; i < figures.size(); ++i) figures[i].name = kStatNames[i];
  return figures;
}

/// Returns a metric as the mean over the categories `first` to `last` and the thresholds, recalls
/// and limits of its definition, summed in this order; -1 if there is no value.
double mean(const Evaluation& e, const Figure& figure, std::size_t first, std::size_t last) {
  const Layout layout = layout_of(e);
  std::vector<std::size_t> columns;  // offsets of areas and limits
  for (std::size_t a = 0; a < layout.areas; ++a)
    for (std::size_t m = 0; m < layout.limits; ++m)
      if (e.area_ranges[a].name == figure.area && e.max_detections[m] == figure.limit)
        columns.push_back(layout.at(0, 0, a, m));
  const auto& table = figure.precision ? e.precision : e.recall;
  const std::size_t recalls = figure.precision ? layout.recalls : 1;
  std::vector<double> values;
  for (std::size_t t = 0; t < e.iou_thresholds.size(); ++t) {
    if (figure.threshold && *figure.threshold != e.iou_thresholds[t]) continue;
    for (std::size_t r = 0; r < recalls; ++r)
      for (std::size_t k = first; k < last; ++k) {
        if (figure.frequency != 0 && e.category_frequencies[k] != figure.frequency) continue;
        const double* row = &table[layout.at(t * recalls + r, k, 0, 0)];
        for (const std::size_t column : columns)
          if (row[column] > -1) values.push_back(row[column]);
      }
  }
  return values.empty() ? -1 : numpy_sum(values) / static_cast<double>(values.size());
}

/// Returns all metrics of the categories `first` to `last`.
std::vector<double> stats_of(const Evaluation& e, std::size_t first, std::size_t last) {
  const std::vector<Figure> all = figures(e);
  std::vector<double> stats(all.size());
  tbb::parallel_for(std::size_t{0}, all.size(),
                    [&](std::size_t i) { stats[i] = mean(e, all[i], first, last); });
  return stats;
}

/// Returns the name used by pycocotools and boundary-iou-api.
const char* name_of(IouType iou) {
  switch (iou) {
    case IouType::box:
      return "bbox";
    case IouType::mask:
      return "segm";
    case IouType::boundary:
      return "boundary";
    case IouType::keypoints:
      return "keypoints";
  }
  return "";
}

}  // namespace

const std::array<const char*, 12> kStatNames = {"AP",  "AP50", "AP75",  "APs", "APm", "APl",
                                                "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};

std::vector<std::string> lvis_stat_names(std::uint32_t most) {
  std::vector<std::string> names;
  const auto usual = lvis_options(IouType::box).max_detections.front();
  for (const Figure& figure : figures_of_lvis(most == 0 ? usual : most))
    names.push_back(figure.name);
  return names;
}

Layout layout_of(const Evaluation& e) {
  return {e.recall_thresholds.size(), e.category_ids.size(), e.area_ranges.size(),
          e.max_detections.size()};
}

std::vector<double> category_stats(const Evaluation& evaluation, std::size_t category) {
  return stats_of(evaluation, category, category + 1);
}

void summarize(Evaluation& evaluation) {
  const std::size_t categories = evaluation.category_ids.size();
  evaluation.stats = stats_of(evaluation, 0, categories);
  evaluation.stat_names.clear();
  for (const Figure& figure : figures(evaluation)) evaluation.stat_names.push_back(figure.name);
  const Figure overall{
      "AP", true, {}, evaluation.area_ranges.front().name, evaluation.max_detections.back()};
  evaluation.category_ap.resize(categories);
  tbb::parallel_for(std::size_t{0}, categories, [&](std::size_t k) {
    evaluation.category_ap[k] = mean(evaluation, overall, k, k + 1);
  });
}

std::string table(const Evaluation& evaluation, IouType iou) {
  std::string text;
  if (!evaluation.federated) text = fmt::format("Evaluate annotation type *{}*\n", name_of(iou));
  const std::string all = fmt::format("{:.2f}:{:.2f}", evaluation.iou_thresholds.front(),
                                      evaluation.iou_thresholds.back());
  std::size_t i = 0;
  for (const Figure& figure : figures(evaluation)) {
    // lvis-api abbreviates areas to their first letter.
    const auto area =
        figure.area == "all" || !evaluation.federated ? figure.area : figure.area.substr(0, 1);
    const std::string categories =
        evaluation.federated
            ? fmt::format(" catIds={:>3}",
                          figure.frequency == 0 ? "all" : std::string(1, figure.frequency))
            : " ";
    text += fmt::format(" {:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3}{}] = {:.3f}\n",
                        figure.precision ? "Average Precision" : "Average Recall",
                        figure.precision ? "(AP)" : "(AR)",
                        figure.threshold ? fmt::format("{:.2f}", *figure.threshold) : all, area,
                        figure.limit, categories, evaluation.stats[i++]);
  }
  return text;
}

}  // namespace millrace::coco
