#include "millrace/coco/analysis/bootstrap.h"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "millrace/base/random.h"

namespace millrace::coco {
namespace {

constexpr std::uint64_t kDrawSeed = 2020;  // fixed, so that results can be compared
constexpr std::uint64_t kCoinSeed = 2021;
constexpr double kRounding = 1e-12;  // differences of AP up to this are rounding errors

/// Returns for each of `n` images how often it is drawn.
std::vector<std::uint16_t> draw_images(std::size_t n, std::span<const std::uint32_t> among,
                                       std::uint64_t number) {
  Rng rng{kDrawSeed, number};
  std::vector<std::uint16_t> times(n);
  for (std::size_t i = 0; i < among.size(); ++i) ++times[among[rng.below(among.size())]];
  return times;
}

/// Assigns each image of the first and then of the second result to side `a` (1) or side `b` (0).
std::vector<std::uint16_t> toss(std::size_t images, std::uint64_t number) {
  Rng rng{kCoinSeed, number};
  std::vector<std::uint16_t> taken(2 * images);
  for (std::size_t i = 0; i < images; ++i) {
    taken[i] = rng.chance(.5);
    taken[images + i] = !taken[i];
  }
  return taken;
}

/// Returns numpy's percentile, with linear interpolation. REQUIRES: `values` is sorted and not
/// empty.
double percentile(const std::vector<double>& values, double part) {
  const double at = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

/// Returns the interval of `figure(a) - figure(b)`, or of `figure(a)` if b is null.
template <class Figure>
Interval interval(const Resamples& a, const Resamples* b, const Figure& figure) {
  const auto difference = [&](const std::vector<ApPair>& left, const std::vector<ApPair>* right) {
    return figure(left) - (right ? figure(*right) : 0);
  };
  std::vector<double> draws;
  for (std::size_t i = 0; i < a.draws.size(); ++i) {
    if (figure(a.draws[i]) < 0) continue;  // no objects in this draw, for b as well
    draws.push_back(difference(a.draws[i], b ? &b->draws[i] : nullptr));
  }
  return basic_interval(difference(a.whole, b ? &b->whole : nullptr), std::move(draws));
}

Spread spread(const Resamples& a, const Resamples* b) {
  using Draw = std::vector<ApPair>;
  Spread result{interval(a, b, [](const Draw& draw) { return mean(draw).ap; }),
                interval(a, b, [](const Draw& draw) { return mean(draw).ap50; }),
                {}};
  for (std::size_t k = 0; k < a.whole.size(); ++k)
    result.category_ap.push_back(interval(a, b, [k](const Draw& draw) { return draw[k].ap; }));
  return result;
}

}  // namespace

Interval basic_interval(double value, std::vector<double> draws) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (draws.empty()) return {kNone, kNone, kNone};
  std::ranges::sort(draws);
  return {value, 2 * value - percentile(draws, .975), 2 * value - percentile(draws, .025)};
}

Resamples resample(const WeightedAp& result, std::size_t images, std::size_t draws,
                   std::span<const std::uint32_t> among) {
  std::vector<std::uint32_t> all;
  if (among.empty()) {
    all.resize(images);
    std::iota(all.begin(), all.end(), 0U);
    among = all;
  }
  std::vector<std::uint16_t> once(images);
  for (const std::uint32_t image : among) once[image] = 1;
  Resamples resamples;
  resamples.whole.resize(result.categories());
  result.measure(once, resamples.whole);
  resamples.draws.assign(draws, resamples.whole);
  tbb::parallel_for(std::size_t{0}, resamples.draws.size(), [&](std::size_t i) {
    result.measure(draw_images(images, among, i), resamples.draws[i]);
  });
  return resamples;
}

Spread spread(const Resamples& result) {
  Spread all = spread(result, nullptr);
  const auto cut = [](Interval& one) {  // keeps NaN
    one.low = std::max(one.low, 0.), one.high = std::min(one.high, 1.);
  };
  cut(all.ap), cut(all.ap50);
  std::ranges::for_each(all.category_ap, cut);
  for (const auto& draw : result.draws) all.ap_draws.push_back(mean(draw).ap);
  return all;
}

Spread spread(const Resamples& a, const Resamples& b) { return spread(a, &b); }

Comparison compare(const Plan& plan, const Matches& a, const Resamples& draws_of_a,
                   const Matches& b) {
  const std::size_t images = plan.truth.images.size(), draws = draws_of_a.draws.size();
  const Matches* alone[] = {&b};
  const Resamples draws_of_b = resample(WeightedAp(plan, alone), images, draws);
  Comparison result;
  result.a = mean(draws_of_a.whole), result.b = mean(draws_of_b.whole);
  result.difference = spread(draws_of_a, draws_of_b);

  const Matches* both[] = {&a, &b};
  const WeightedAp mixed(plan, both);
  const std::size_t categories = mixed.categories();
  // For each draw, whether the AP difference of each category, and last of all, is at least as
  // large as the observed one.
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
    for (std::size_t k = 0; k < categories; ++k)
      as_far[i].push_back(
          differs(left[k].ap - right[k].ap, draws_of_a.whole[k].ap - draws_of_b.whole[k].ap));
    as_far[i].push_back(differs(mean(left).ap - mean(right).ap, result.a.ap - result.b.ap));
  });
  std::vector<double> p(categories + 1, 1);
  for (const auto& one : as_far)
    for (std::size_t k = 0; k <= categories; ++k) p[k] += one[k];
  for (double& value : p) value /= static_cast<double>(draws + 1);
  result.p = p.back();
  p.pop_back();
  result.category_p = std::move(p);
  return result;
}

std::vector<std::size_t> most_different(const Comparison& comparison, std::size_t most) {
  const auto& intervals = comparison.difference.category_ap;
  std::vector<std::size_t> order;
  for (std::size_t k = 0; k < intervals.size(); ++k)
    if (std::abs(intervals[k].value) > 0) order.push_back(k);  // excludes NaN
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t k) { return std::abs(intervals[k].value); });
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

Interval ap_so_far(const Evaluator& evaluator, std::size_t draws) {
  std::vector<std::uint32_t> images;
  const Matches matches = evaluator.matches(images);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (images.empty()) return {-1, kNone, kNone};
  const Matches* alone[] = {&matches};
  const WeightedAp result(evaluator.plan(), alone);
  const Resamples drawn = resample(result, evaluator.plan().truth.images.size(), draws, images);
  Interval ap = spread(drawn).ap;
  ap.value = mean(drawn.whole).ap;
  return ap;
}

std::string ap_text(const Interval& ap) {
  if (ap.value < 0) return "-";
  return fmt::format("{:.3f} ({:.3f} .. {:.3f})", ap.value, ap.low, ap.high);
}

}  // namespace millrace::coco
