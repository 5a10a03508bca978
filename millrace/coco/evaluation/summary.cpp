#include "millrace/coco/evaluation/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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

enum Area : std::size_t { all, small, medium, large };
constexpr std::array kAreaNames = {"all", "small", "medium", "large"};
constexpr std::size_t kAnyThreshold = kThresholds, kHalf = 0, kThreeQuarters = 5;

/// One of the twelve; `limit` is a number of detections.
struct Figure {
  bool precision;
  std::size_t threshold;
  Area area;
  std::uint32_t limit;
};

std::array<Figure, 12> figures(std::span<const std::uint32_t> limits) {
  const auto limit = [&](std::size_t i) { return limits[std::min(i, limits.size() - 1)]; };
  const std::uint32_t usual = limits.size() < 3 ? limit(2) : 100;  // pycocotools asks for 100
  return {{{true, kAnyThreshold, all, usual},
           {true, kHalf, all, limit(2)},
           {true, kThreeQuarters, all, limit(2)},
           {true, kAnyThreshold, small, limit(2)},
           {true, kAnyThreshold, medium, limit(2)},
           {true, kAnyThreshold, large, limit(2)},
           {false, kAnyThreshold, all, limit(0)},
           {false, kAnyThreshold, all, limit(1)},
           {false, kAnyThreshold, all, limit(2)},
           {false, kAnyThreshold, small, limit(2)},
           {false, kAnyThreshold, medium, limit(2)},
           {false, kAnyThreshold, large, limit(2)}}};
}

/// The mean over thresholds, recalls, categories `first` to `last` and limits of this number, in
/// this order; -1 if there is nothing to average.
double mean(const Evaluation& e, const Figure& figure, std::size_t first, std::size_t last) {
  const Layout layout(e);
  std::vector<double> values;
  for (std::size_t t = 0; t < kThresholds; ++t) {
    if (figure.threshold != kAnyThreshold && figure.threshold != t) continue;
    for (std::size_t r = 0; r < (figure.precision ? kRecalls : 1); ++r)
      for (std::size_t k = first; k < last; ++k)
        for (std::size_t m = 0; m < layout.limits; ++m) {
          if (e.max_detections[m] != figure.limit) continue;
          const double value = figure.precision ? e.precision[layout.at(t, r, k, figure.area, m)]
                                                : e.recall[layout.at(t, k, figure.area, m)];
          if (value > -1) values.push_back(value);
        }
  }
  return values.empty() ? -1 : pairwise_sum(values) / static_cast<double>(values.size());
}

/// The twelve of categories `first` to `last`.
std::array<double, 12> stats_of(const Evaluation& e, std::size_t first, std::size_t last) {
  std::array<double, 12> stats;
  std::ranges::transform(figures(e.max_detections), stats.begin(),
                         [&](const Figure& figure) { return mean(e, figure, first, last); });
  return stats;
}

}  // namespace

const std::array<const char*, 12> kStatNames = {"AP",  "AP50", "AP75",  "APs", "APm", "APl",
                                                "AR1", "AR10", "AR100", "ARs", "ARm", "ARl"};

std::array<double, 12> category_stats(const Evaluation& evaluation, std::size_t category) {
  return stats_of(evaluation, category, category + 1);
}

void summarize(Evaluation& evaluation) {
  const std::size_t categories = evaluation.category_ids.size();
  evaluation.stats = stats_of(evaluation, 0, categories);
  const Figure overall{true, kAnyThreshold, all, evaluation.max_detections.back()};
  evaluation.category_ap.clear();
  for (std::size_t k = 0; k < categories; ++k)
    evaluation.category_ap.push_back(mean(evaluation, overall, k, k + 1));
}

std::string table(const Evaluation& evaluation, IouType iou) {
  std::string text =
      fmt::format("Evaluate annotation type *{}*\n", iou == IouType::box ? "bbox" : "segm");
  std::size_t i = 0;
  for (const Figure& figure : figures(evaluation.max_detections)) {
    const std::string threshold = figure.threshold == kAnyThreshold
                                      ? "0.50:0.95"
                                      : fmt::format("{:.2f}", kIouThresholds[figure.threshold]);
    text += fmt::format(" {:<18} {} @[ IoU={:<9} | area={:>6} | maxDets={:>3} ] = {:.3f}\n",
                        figure.precision ? "Average Precision" : "Average Recall",
                        figure.precision ? "(AP)" : "(AR)", threshold, kAreaNames[figure.area],
                        figure.limit, evaluation.stats[i++]);
  }
  return text;
}

}  // namespace millrace::coco
