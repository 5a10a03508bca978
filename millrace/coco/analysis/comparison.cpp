#include "millrace/coco/analysis/comparison.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/random.h"

namespace millrace::coco {
namespace {

constexpr std::uint64_t kCoinSeed = 2021;  // seed of the coins; the draws have another
constexpr double kRounding = 1e-12;        // differences of AP that only rounding makes

/// For each image of the first and then of the second result whether side `a` takes it.
std::vector<std::uint16_t> toss(std::size_t images, std::uint64_t number) {
  Rng rng{kCoinSeed, number};
  std::vector<std::uint16_t> taken(2 * images);
  for (std::size_t i = 0; i < images; ++i) {
    taken[i] = rng.chance(.5);
    taken[images + i] = !taken[i];
  }
  return taken;
}

}  // namespace

Comparison compare(const Dataset& truth, const Matches& a, const Resamples& draws_of_a,
                   const Matches& b, bool class_agnostic) {
  const std::size_t images = truth.images.size(), draws = draws_of_a.draws.size();
  const Matches* alone[] = {&b};
  const Resamples draws_of_b = resample(WeightedAp(truth, alone, class_agnostic), images, draws);
  Comparison result;
  result.a = mean(draws_of_a.whole), result.b = mean(draws_of_b.whole);
  result.difference = spread(draws_of_a, draws_of_b);
  result.draws = draws;

  const Matches* both[] = {&a, &b};
  const WeightedAp mixed(truth, both, class_agnostic);
  const std::size_t categories = mixed.categories();
  // Whether AP of all categories (the last) and of each differs at least as much as it does.
  std::vector<std::vector<std::uint8_t>> as_far(draws);
  tbb::parallel_for(std::size_t{0}, draws, [&](std::size_t i) {
    auto taken = toss(images, i);
    std::vector<ApPair> left(categories), right(categories);
    mixed.measure(taken, left);
    for (auto& weight : taken) weight = !weight;
    mixed.measure(taken, right);
    const auto differs = [](double difference, double observed) {
      return std::abs(difference) >= std::abs(observed) - kRounding;
    };
    for (std::size_t k = 0; k < categories; ++k) {
      as_far[i].push_back(
          differs(left[k].ap - right[k].ap, draws_of_a.whole[k].ap - draws_of_b.whole[k].ap));
    }
    as_far[i].push_back(differs(mean(left).ap - mean(right).ap, result.a.ap - result.b.ap));
  });
  std::vector<double> p(categories + 1, 1);
  for (const auto& one : as_far) {
    for (std::size_t k = 0; k <= categories; ++k) p[k] += one[k];
  }
  for (double& value : p) value /= static_cast<double>(draws + 1);
  result.p = p.back();
  p.pop_back();
  result.category_p = std::move(p);
  return result;
}

std::vector<std::size_t> most_different(const Comparison& comparison, std::size_t most) {
  const auto& intervals = comparison.difference.category_ap;
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < intervals.size(); ++k) {
    if (std::abs(intervals[k].value) > 0) order.push_back(k);  // not where it is NaN
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(intervals[a].value) > std::abs(intervals[b].value);
  });
  if (order.size() > most) order.resize(most);
  return order;
}

std::string sentence(const Comparison& comparison) {
  if (comparison.a.ap < 0) return "no objects to find: nothing to compare";
  const Interval& ap = comparison.difference.ap;
  return fmt::format(
      "{:+.2f} AP ({:.2f} against {:.2f}), 95 % interval {:+.2f} .. {:+.2f}, p = {:.3f}: {}",
      100 * ap.value, 100 * comparison.a.ap, 100 * comparison.b.ap, 100 * ap.low, 100 * ap.high,
      comparison.p,
      !comparison.significant() ? "within noise"
      : ap.value > 0            ? "better"
                                : "worse");
}

}  // namespace millrace::coco
