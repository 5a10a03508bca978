// Summation in numpy's order.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

namespace millrace::coco {

/// Returns numpy's sum, bitwise equal: pairwise, with eight accumulators in blocks of up to 128.
inline double numpy_sum(std::span<const double> values) {
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
  return numpy_sum(values.first(half)) + numpy_sum(values.subspan(half));
}

}  // namespace millrace::coco
