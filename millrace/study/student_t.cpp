#include "millrace/study/student_t.h"

#include <cmath>
#include <initializer_list>
#include <numbers>

namespace millrace::study {
namespace {

/// The continued fraction of the incomplete beta function, by Lentz's method (Numerical Recipes
/// 6.4).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  constexpr int kMostTerms = 10000;
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    double factor = 1;
    for (const double term : {even, odd}) {
      d = 1 / away_from_zero(1 + term * d);
      c = away_from_zero(1 + term / c);
      factor = c * d;
      result *= factor;
    }
    if (std::abs(factor - 1) < kEnough) break;
  }
  return result;
}

/// The regularized incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/// Where the falling `beyond` comes to `tail`.
template <class Beyond>
double where(double tail, const Beyond& beyond) {
  double low = 0, high = 1;
  while (beyond(high) > tail && high < 1e300) high *= 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (beyond(middle) > tail ? low : high) = middle;
  }
  return high;
}

}  // namespace

double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double beyond_t(double t, double freedom) {
  if (std::isinf(t)) return 0;
  return incomplete_beta(freedom / 2, .5, freedom / (freedom + t * t));
}

double t_of_tail(double tail, double freedom) {
  return where(tail, [&](double t) { return beyond_t(t, freedom); });
}

double normal_of_tail(double tail) {
  return where(tail, [](double z) { return std::erfc(z / std::numbers::sqrt2); });
}

}  // namespace millrace::study
