#include "millrace/coco/analysis/bootstrap.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <limits>
#include <span>

#include "millrace/base/random.h"

namespace millrace::coco {
namespace {

// Of the draws: one for all, or results could not be compared
constexpr std::uint64_t kDrawSeed = 2020;

std::vector<std::uint16_t> draw_images(std::size_t n, std::uint64_t number) {
  Rng rng{kDrawSeed, number};
  std::vector<std::uint16_t> times(n);
  for (std::size_t i = 0; i < n; ++i) ++times[rng.below(n)];
  return times;
}

/// numpy's percentile: linear between the two nearest. REQUIRES: sorted, not empty.
double percentile(const std::vector<double>& values, double part) {
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

Interval interval(double value, std::vector<double> draws) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (draws.empty()) return {kNone, kNone, kNone};
  std::sort(draws.begin(), draws.end());
  return {value, 2 * value - percentile(draws, .975), 2 * value - percentile(draws, .025)};
}

/// The interval of what `figure` says of two scored draws; of one where b is null.
template <class Figure>
Interval interval(const Resamples& a, const Resamples* b, const Figure& figure) {
  const auto difference = [&](const std::vector<ApPair>& left, const std::vector<ApPair>* right) {
    return figure(left) - (right ? figure(*right) : 0);
  };
  std::vector<double> draws;
  for (std::size_t i = 0; i < a.draws.size(); ++i) {
    if (figure(a.draws[i]) < 0) continue;  // nothing to find: as little for b
    draws.push_back(difference(a.draws[i], b ? &b->draws[i] : nullptr));
  }
  return interval(difference(a.whole, b ? &b->whole : nullptr), std::move(draws));
}

Spread spread(const Resamples& a, const Resamples* b) {
  using Draw = std::vector<ApPair>;
  Spread result{interval(a, b, [](const Draw& draw) { return mean(draw).ap; }),
                interval(a, b, [](const Draw& draw) { return mean(draw).ap50; }),
                {}};
  for (std::size_t k = 0; k < a.whole.size(); ++k) {
    result.category_ap.push_back(interval(a, b, [k](const Draw& draw) { return draw[k].ap; }));
  }
  return result;
}

}  // namespace

Resamples resample(const WeightedAp& result, std::size_t images, std::size_t draws) {
  Resamples resamples;
  resamples.whole.resize(result.categories());
  result.measure(std::vector<std::uint16_t>(images, 1), resamples.whole);
  resamples.draws.assign(draws, resamples.whole);
  tbb::parallel_for(std::size_t{0}, resamples.draws.size(), [&](std::size_t i) {
    result.measure(draw_images(images, i), resamples.draws[i]);
  });
  return resamples;
}

Spread spread(const Resamples& result) {
  Spread all = spread(result, nullptr);
  const auto cut = [](Interval& one) {  // NaN stays
    one.low = std::max(one.low, 0.), one.high = std::min(one.high, 1.);
  };
  cut(all.ap), cut(all.ap50);
  std::for_each(all.category_ap.begin(), all.category_ap.end(), cut);
  return all;
}

Spread spread(const Resamples& a, const Resamples& b) { return spread(a, &b); }

}  // namespace millrace::coco
