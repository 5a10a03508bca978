#include "millrace/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace millrace {
namespace {

TEST(Permutation, VisitsEveryIndexOnce) {
  for (const std::uint64_t size : {1, 2, 3, 7, 64, 65, 1000, 117266}) {
    const Permutation permutation(size, /*seed=*/5, /*epoch=*/2);
    std::vector<bool> seen(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const auto index = permutation(i);
      ASSERT_LT(index, size);
      ASSERT_FALSE(seen[index]);
      seen[index] = true;
    }
  }
}

TEST(Permutation, DiffersByEpochAndSeed) {
  int equal = 0;
  const Permutation a(1000, 1, 0), b(1000, 1, 1), c(1000, 2, 0);
  for (std::uint64_t i = 0; i < 1000; ++i) equal += (a(i) == b(i)) + (a(i) == c(i));
  EXPECT_LT(equal, 20);  // two expected by chance
}

TEST(Rng, DependsOnKeyOnly) {
  Rng a{1, 2, 3}, b{1, 2, 3}, c{1, 3, 2};
  const auto first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, c());
}

TEST(Rng, UniformHasExpectedMeanAndVariance) {
  Rng rng{7};
  double sum = 0, squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double u = rng.uniform();
    ASSERT_TRUE(u >= 0 && u < 1);
    sum += u;
    squares += u * u;
  }
  EXPECT_NEAR(sum / 1e5, 0.5, 0.005);
  EXPECT_NEAR(squares / 1e5, 1.0 / 3, 0.005);
}

TEST(Rng, BelowIsUniform) {
  Rng rng{9};
  int counts[6] = {};
  for (int i = 0; i < 60000; ++i) ++counts[rng.below(6)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 500);
}

}  // namespace
}  // namespace millrace
