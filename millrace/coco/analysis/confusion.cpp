#include "millrace/coco/analysis/confusion.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace millrace::coco {

Confusion::Confusion(const Matches& matches, double score)
    : matches_(matches),
      categories_(matches.truths.size()),
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
  for (std::size_t o = 0; o < pairs.objects.size(); ++o) {
    if (!taken[o] && !pairs.objects[o].crowd) count(pairs.objects[o].category, categories_);
  }
}

std::vector<ConfusedPair> confused_pairs(const ConfusionMatrix& matrix, std::size_t most) {
  std::vector<ConfusedPair> pairs;
  for (std::size_t truth = 0; truth < matrix.categories; ++truth) {
    double objects = 0;
    for (std::size_t found = 0; found <= matrix.categories; ++found) {
      objects += static_cast<double>(matrix.at(truth, found));
    }
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
  for (const auto& part : counts_) {
    std::transform(part.begin(), part.end(), matrix.counts.begin(), matrix.counts.begin(),
                   std::plus<>());
  }
  return matrix;
}

}  // namespace millrace::coco
