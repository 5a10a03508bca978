#include "millrace/coco/evaluation/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>

namespace millrace::coco {
namespace {

/// numpy's sum, to the bit: pairwise, with eight accumulators in blocks of up to 128.
double pairwise_sum(std::span<const double> values) {
  const std::size_t n = values.size();
  if (n < 8) return std::accumulate(values.begin(), values.end(), -0.0);
  if (n <= 128) {
    std::array<double, 8> r;
    std::copy_n(values.begin(), 8, r.begin());
    std::size_t i = 8;
    for (; i < n - n % 8; i += 8)
      for (std::size_t k = 0; k < 8; ++k) r[k] += values[i + k];
    double sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
    for (; i < n; ++i) sum += values[i];
    return sum;
  }
  const std::size_t half = n / 2 - n / 2 % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}

/// One of the twelve; `limit` is a number of detections.
struct Figure {
  const char* name;
  bool precision;
  std::optional<double> threshold;  // none: all
  const char* area;                 // the name of a range
  std::uint32_t limit;
};

std::vector<Figure> figures(std::span<const std::uint32_t> limits) {
  const auto limit = [&](std::size_t i) { return limits[std::min(i, limits.size() - 1)]; };
  const std::uint32_t usual = limits.size() < 3 ? limit(2) : 100;  // pycocotools asks for 100
  return {{"AP", true, {}, "all", usual},         {"AP50", true, .5, "all", limit(2)},
          {"AP75", true, .75, "all", limit(2)},   {"APs", true, {}, "small", limit(2)},
          {"APm", true, {}, "medium", limit(2)},  {"APl", true, {}, "large", limit(2)},
          {"AR1", false, {}, "all", limit(0)},    {"AR10", false, {}, "all", limit(1)},
          {"AR100", false, {}, "all", limit(2)},  {"ARs", false, {}, "small", limit(2)},
          {"ARm", false, {}, "medium", limit(2)}, {"ARl", false, {}, "large", limit(2)}};
}

/// The mean over the categories `first` to `last`, with the thresholds, recalls and limits of this
/// number, in this order; -1 if there is nothing to average.
double mean(const Evaluation& e, const Figure& figure, std::size_t first, std::size_t last) {
  const Layout layout = layout_of(e);
  std::vector<double> values;
  for (std::size_t t = 0; t < e.iou_thresholds.size(); ++t) {
    if (figure.threshold && *figure.threshold != e.iou_thresholds[t]) continue;
    for (std::size_t r = 0; r < (figure.precision ? layout.recalls : 1); ++r)
      for (std::size_t k = first; k < last; ++k)
        for (std::size_t a = 0; a < layout.areas; ++a) {
          if (e.area_ranges[a].name != figure.area) continue;
          for (std::size_t m = 0; m < layout.limits; ++m) {
            if (e.max_detections[m] != figure.limit) continue;
            const double value = figure.precision ? e.precision[layout.at(t, r, k, a, m)]
                                                  : e.recall[layout.at(t, k, a, m)];
            if (value > -1) values.push_back(value);
          }
        }
  }
  return values.empty() ? -1 : pairwise_sum(values) / static_cast<double>(values.size());
}

/// The figures of categories `first` to `last`.
std::vector<double> stats_of(const Evaluation& e, std::size_t first, std::size_t last) {
  std::vector<double> stats;
  for (const Figure& figure : figures(e.max_detections))
    stats.push_back(mean(e, figure, first, last));
  return stats;
}

}  // namespace

const std::array<const char*, 12> kStatNames = {"AP",  "AP50", "AP75",  "APs", "APm", "APl",
                                                "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};

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
  for (const Figure& figure : figures(evaluation.max_detections))
    evaluation.stat_names.push_back(figure.name);
  const Figure overall{"AP",
                       true,
                       {},
                       evaluation.area_ranges.front().name.c_str(),
                       evaluation.max_detections.back()};
  evaluation.category_ap.clear();
  for (std::size_t k = 0; k < categories; ++k)
    evaluation.category_ap.push_back(mean(evaluation, overall, k, k + 1));
}

std::string table(const Evaluation& evaluation, IouType iou) {
  std::string text =
      fmt::format("Evaluate annotation type *{}*\n", iou == IouType::box ? "bbox" : "segm");
  const std::string all = fmt::format("{:.2f}:{:.2f}", evaluation.iou_thresholds.front(),
                                      evaluation.iou_thresholds.back());
  std::size_t i = 0;
  for (const Figure& figure : figures(evaluation.max_detections))
    text += fmt::format(" {:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3} ] = {:.3f}\n",
                        figure.precision ? "Average Precision" : "Average Recall",
                        figure.precision ? "(AP)" : "(AR)",
                        figure.threshold ? fmt::format("{:.2f}", *figure.threshold) : all,
                        figure.area, figure.limit, evaluation.stats[i++]);
  return text;
}

}  // namespace millrace::coco
