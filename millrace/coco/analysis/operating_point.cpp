#include "millrace/coco/analysis/operating_point.h"

#include <tbb/parallel_sort.h>

#include <algorithm>

namespace millrace::coco {

OperatingPoints operating_points(const Matches& matches) {
  struct Item {
    double score;
    bool hit;
  };
  std::vector<Item> items;
  items.reserve(matches.detections.size());
  for (const Scored& one : matches.detections) {
    const auto [hit, ignored] = one.outcomes[0];
    if (!(ignored & 1)) items.push_back({one.score, (hit & 1) != 0});
  }
  // Hits and misses of one score are taken together below: their order does not matter.
  tbb::parallel_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return score_fall(a.score) < score_fall(b.score);
  });
  double objects = 0;
  for (const auto& count : matches.truths) objects += static_cast<double>(count[0]);

  OperatingPoints result;
  if (objects == 0) return result;
  constexpr std::size_t kPoints = 200;
  double hits = 0;
  for (std::size_t i = 0, drawn = 0; i < items.size(); ++i) {
    hits += items[i].hit;
    if (i + 1 < items.size() && items[i + 1].score == items[i].score) continue;
    const auto counted = static_cast<double>(i + 1);
    const OperatingPoint point{items[i].score, hits / counted, hits / objects,
                               2 * hits / (counted + objects)};
    if (point.f1 > result.best.f1) result.best = point;
    if ((i + 1) * kPoints < drawn * items.size()) continue;
    result.curve.push_back(point);
    drawn = (i + 1) * kPoints / items.size() + 1;
  }
  return result;
}

}  // namespace millrace::coco
