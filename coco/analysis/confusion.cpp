#include "millrace/coco/analysis/confusion.h"

#include <tbb/parallel_sort.h>

#include <algorithm>
#include <functional>
#include <tuple>

namespace millrace::coco {

OperatingPoints operating_points(const Matches& matches) {
  std::vector<std::pair<double, bool>> items;  // score, is a true positive
  items.reserve(matches.detections.size());
  for (std::size_t i = 0; i < matches.detections.size(); ++i) {
    const auto [hit, ignored] = matches.outcome(i);
    if (!(ignored & 1)) items.emplace_back(matches.detections[i].score, (hit & 1) != 0);
  }
  // Detections with equal scores form one point below, so their order does not matter.
  tbb::parallel_sort(items.begin(), items.end(), [](const auto& a, const auto& b) {
    return descending_score_key(a.first) < descending_score_key(b.first);
  });
  double objects = 0;
  for (std::size_t k = 0; k < matches.extent.categories; ++k)
    objects += static_cast<double>(matches.objects(k));

  OperatingPoints result;
  if (objects == 0) return result;
  constexpr std::size_t kPoints = 200;
  double hits = 0;
  for (std::size_t i = 0, drawn = 0; i < items.size(); ++i) {
    const auto [score, hit] = items[i];
    hits += hit;
    if (i + 1 < items.size() && items[i + 1].first == score) continue;
    const auto counted = static_cast<double>(i + 1);
    const OperatingPoint point{score, hits / counted, hits / objects,
                               2 * hits / (counted + objects)};
    if (point.f1 > result.best.f1) result.best = point;
    if ((i + 1) * kPoints < drawn * items.size()) continue;
    result.curve.push_back(point);
    drawn = (i + 1) * kPoints / items.size() + 1;
  }
  return result;
}

Confusion::Confusion(const Matches& matches, double score)
    : matches_(matches),
      categories_(matches.extent.categories),
      score_(score),
      counts_(std::vector<std::int64_t>((categories_ + 1) * (categories_ + 1), 0)) {}

void Confusion::add(const ImagePairs& pairs) {
  auto& counts = counts_.local();
  const auto count = [&](std::size_t truth, std::size_t found) {
    ++counts[truth * (categories_ + 1) + found];
  };
  std::vector<bool> taken(pairs.objects.size());
  for (std::size_t f = 0; f < pairs.found.size(); ++f) {
    const auto& found = pairs.found[f];
    if (!(matches_.detections[found.match].score >= score_)) break;
    const std::size_t o = best_free(pairs, f, taken, /*own_category_only=*/false);
    if (o < pairs.objects.size()) {
      taken[o] = true;
      count(pairs.objects[o].category, found.category);
    } else if (!in_crowd(pairs, f)) {
      count(categories_, found.category);
    }
  }
  for (std::size_t o = 0; o < pairs.objects.size(); ++o)
    if (!taken[o] && !pairs.objects[o].crowd) count(pairs.objects[o].category, categories_);
}

std::vector<ConfusedPair> confused_pairs(const ConfusionMatrix& matrix, std::size_t most) {
  std::vector<ConfusedPair> pairs;
  for (std::size_t truth = 0; truth < matrix.categories; ++truth) {
    double objects = 0;
    for (std::size_t found = 0; found <= matrix.categories; ++found)
      objects += static_cast<double>(matrix.at(truth, found));
    for (std::size_t found = 0; found < matrix.categories; ++found) {
      const std::int64_t count = matrix.at(truth, found);
      if (truth == found || count == 0) continue;
      pairs.push_back({truth, found, count, static_cast<double>(count) / objects});
    }
  }
  std::ranges::stable_sort(pairs, [](const ConfusedPair& a, const ConfusedPair& b) {
    return std::tie(a.count, a.share) > std::tie(b.count, b.share);
  });
  if (pairs.size() > most) pairs.resize(most);
  return pairs;
}

ConfusionMatrix Confusion::matrix() const {
  ConfusionMatrix matrix{categories_, score_,
                         std::vector<std::int64_t>((categories_ + 1) * (categories_ + 1), 0)};
  for (const auto& part : counts_)
    std::ranges::transform(part, matrix.counts, matrix.counts.begin(), std::plus<>());
  return matrix;
}

}  // namespace millrace::coco
