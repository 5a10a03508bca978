#include "millrace/study/seed_bootstrap.h"

#include <algorithm>
#include <cmath>

#include "millrace/base/random.h"
#include "millrace/study/seed_noise.h"

namespace millrace::study {
namespace {

constexpr std::uint64_t kSeedDraws = 2022;  // beside coco's draws of images
constexpr double kRounding = 1e-12;         // differences of AP that only rounding makes

double variance(std::span<const double> values) {
  const double deviation = moments(values).deviation;
  return std::isnan(deviation) ? 0 : deviation * deviation;
}

double mean(std::span<const double> values) { return moments(values).mean; }

}  // namespace

ApDraws ap_draws(const coco::Resamples& resamples) {
  ApDraws result{coco::mean(resamples.whole).ap, {}};
  for (const auto& draw : resamples.draws) result.draws.push_back(coco::mean(draw).ap);
  return result;
}

SeedBootstrap bootstrap(std::span<const ApDraws> a, std::span<const ApDraws> b) {
  const std::size_t seeds = a.size();
  std::vector<double> whole;  // (seeds)
  for (std::size_t s = 0; s < seeds; ++s) whole.push_back(a[s].whole - b[s].whole);
  const double value = mean(whole);

  std::vector<double> drawn;                      // of seeds and images
  std::vector<double> of_all;                     // of images: the mean over all seeds
  std::vector<std::vector<double>> apart(seeds);  // of images: each seed less that mean
  for (std::size_t i = 0; i < a[0].draws.size(); ++i) {
    if (a[0].draws[i] < 0) continue;  // nothing to find: as little for the others
    std::vector<double> each, picked;
    for (std::size_t s = 0; s < seeds; ++s) each.push_back(a[s].draws[i] - b[s].draws[i]);
    Rng rng{kSeedDraws, i};
    for (std::size_t s = 0; s < seeds; ++s) picked.push_back(each[rng.below(seeds)]);
    drawn.push_back(mean(picked));
    of_all.push_back(mean(each));
    for (std::size_t s = 0; s < seeds; ++s) apart[s].push_back(each[s] - of_all.back());
  }

  SeedBootstrap result;
  if (drawn.empty()) {
    result.interval = coco::basic_interval(value, {});
    return result;
  }
  double images = variance(of_all);
  // What the images do to one seed alone, of which the mean over n seeds has 1 / n.
  if (seeds > 1) {
    double own = 0;
    for (const auto& one : apart) own += variance(one);
    images -= own / static_cast<double>(seeds - 1) / static_cast<double>(seeds);
  }
  result.images_deviation = std::sqrt(std::max(0., images));
  std::size_t as_far = 1;
  for (const double draw : drawn) as_far += std::abs(draw - value) >= std::abs(value) - kRounding;
  result.p = static_cast<double>(as_far) / static_cast<double>(drawn.size() + 1);
  result.interval = coco::basic_interval(value, std::move(drawn));
  return result;
}

}  // namespace millrace::study
