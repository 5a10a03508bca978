#include "millrace/study/seed_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "millrace/study/student_t.h"

namespace millrace::study {
namespace {

double freedom_of(std::size_t n) { return static_cast<double>(n) - 1; }

double root_of_squares(double a, double b) { return std::sqrt(a * a + b * b); }

/// half_width, for a t and z that are known.
double half_width(const Noise& noise, double n, double t, double z) {
  return root_of_squares(t * noise.seeds / std::sqrt(n), z * noise.images);
}

}  // namespace

Moments moments(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  Moments result;
  for (const double value : values) result.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation =
      values.size() < 2 ? std::numeric_limits<double>::quiet_NaN() : std::sqrt(squares / (n - 1));
  return result;
}

double half_width(const Noise& noise, std::size_t n, double alpha) {
  return half_width(noise, static_cast<double>(n), t_of_tail(alpha, freedom_of(n)),
                    normal_of_tail(alpha));
}

double p_of(double mean, const Noise& noise, std::size_t n) {
  if (mean == 0) return 1;
  double low = 0, high = 1;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (half_width(noise, n, middle) < std::abs(mean) ? high : low) = middle;
  }
  return high;
}

double power(double truth, const Noise& noise, std::size_t n) {
  const double count = static_cast<double>(n), freedom = freedom_of(n);
  const double t = t_of_tail(kAlpha, freedom), z = normal_of_tail(kAlpha);
  const double spread = root_of_squares(noise.seeds / std::sqrt(count), noise.images);
  if (spread == 0) return truth == 0 ? 0 : 1;
  // Over u, the deviation that the seeds show divided by the true one: chi / sqrt(freedom), whose
  // density is below. By Simpson's rule.
  const double log_front =
      std::log(2) + freedom / 2 * std::log(freedom / 2) - std::lgamma(freedom / 2);
  const auto density = [&](double u) {
    if (u == 0) return freedom > 1 ? 0. : std::exp(log_front);
    return std::exp(log_front + (freedom - 1) * std::log(u) - freedom * u * u / 2);
  };
  const auto shown = [&](double u) {
    const double half = half_width({u * noise.seeds, noise.images}, count, t, z);
    return normal_below((truth - half) / spread) + normal_below((-truth - half) / spread);
  };
  constexpr double kFar = 8;  // deviations of u
  constexpr int kParts = 1000;
  const double reach = kFar / std::sqrt(2 * freedom), low = std::max(0., 1 - reach);
  const double step = (1 + reach - low) / kParts;
  double sum = 0;
  for (int i = 0; i <= kParts; ++i) {
    const double u = low + i * step;
    sum += (i == 0 || i == kParts ? 1 : i % 2 == 1 ? 4 : 2) * density(u) * shown(u);
  }
  return std::min(1., sum * step / 3);
}

double detectable(const Noise& noise, std::size_t n) {
  double low = 0, high = half_width(noise, n);
  if (high == 0) return 0;
  while (power(high, noise, n) < kPower) high *= 2;
  constexpr int kHalvings = 40;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (power(middle, noise, n) < kPower ? low : high) = middle;
  }
  return high;
}

std::optional<std::size_t> seeds_needed(double truth, const Noise& noise) {
  constexpr std::size_t kMost = 100000;
  const auto enough = [&](std::size_t n) { return power(truth, noise, n) >= kPower; };
  std::size_t high = 2;
  while (high < kMost && !enough(high)) high = std::min(2 * high, kMost);
  if (!enough(high)) return std::nullopt;
  for (std::size_t low = high / 2; high > 2 && low + 1 < high;) {
    const std::size_t middle = (low + high) / 2;
    (enough(middle) ? high : low) = middle;
  }
  return high;
}

double images_needed(double truth, const Noise& noise) {
  const double shown = normal_of_tail(kAlpha) + normal_of_tail(2 * (1 - kPower));
  const double ratio = shown * noise.images / truth;
  return ratio * ratio;
}

}  // namespace millrace::study
