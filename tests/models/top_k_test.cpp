#include "millrace/models/ops/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "millrace/base/random.h"

namespace millrace::testing {
namespace {

using Indices = std::vector<std::int64_t>;

/// Computes top_k by its definition, a stable sort.
Indices sorted(const std::vector<float>& values, std::int64_t count) {
  Indices order(values.size());
  std::iota(order.begin(), order.end(), 0);
  const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  std::erase_if(order, [&](std::int64_t i) { return !std::isfinite(value(i)); });
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return value(a) > value(b); });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  return order;
}

std::vector<float> noise(std::size_t count, double step = 0) {
  Rng rng{count, static_cast<std::uint64_t>(step * 1000)};
  std::vector<float> values(count);
  for (auto& value : values) {
    const double drawn = rng.normal();
    value = static_cast<float>(step > 0 ? std::round(drawn / step) * step : drawn);
  }
  return values;
}

TEST(TopK, MatchesStableSort) {
  for (const std::size_t size : {0, 1, 63, 64, 65, 1000, 50'000})
    for (const double step : {0.0, 0.1})  // without ties and with many
      for (const std::int64_t count : {0, 1, 100, 2000}) {
        const auto values = noise(size, step);
        EXPECT_EQ(top_k(values, count), sorted(values, count)) << size << " " << step;
      }
}

TEST(TopK, KeepsOrderOfEqualValues) {
  EXPECT_EQ(top_k(std::vector{1.F, 2.F, -0.F, 2.F, 0.F, 2.F}, 5), (Indices{1, 3, 5, 0, 2}));
}

TEST(TopK, SkipsNonFiniteValues) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(top_k(std::vector{nan, 1.F, infinite, -infinite, -3.F}, 4), (Indices{1, 4}));
  EXPECT_TRUE(top_k(std::vector<float>(100'000, nan), 100).empty());
}

TEST(TopK, HandlesLargeValuesAtRegularIntervals) {
  auto values = noise(100'000);
  // the only values that sampling at regular intervals would draw
  for (std::size_t i = 0; i < values.size(); i += 16) values[i] += 1000;
  for (const std::int64_t count : {1000, 6000, 9000})
    EXPECT_EQ(top_k(values, count), sorted(values, count));
}

}  // namespace
}  // namespace millrace::testing
