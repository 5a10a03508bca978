#include "millrace/plugins/rtdetr/assignment.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "millrace/base/random.h"

namespace millrace::rtdetr {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

double sum_of(const std::vector<double>& costs, std::int64_t columns,
              const std::vector<std::int64_t>& column_of) {
  double sum = 0;
  for (std::size_t row = 0; row < column_of.size(); ++row)
    if (column_of[row] >= 0)
      sum +=
          costs[row * static_cast<std::size_t>(columns) + static_cast<std::size_t>(column_of[row])];
  return sum;
}

/// Returns the minimum cost over all assignments.
double least_sum(const std::vector<double>& costs, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(std::max(rows, columns)));
  std::iota(order.begin(), order.end(), 0);
  double least = std::numeric_limits<double>::infinity();
  do {
    auto column_of = order;
    column_of.resize(static_cast<std::size_t>(rows));
    for (auto& column : column_of)
      if (column >= columns) column = -1;
    least = std::min(least, sum_of(costs, columns, column_of));
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Assign, FindsCheapestAssignment) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    millrace::Rng rng{seed};
    const auto rows = rng.between(1, 5), columns = rng.between(1, 5);
    std::vector<double> costs(static_cast<std::size_t>(rows * columns));
    // Every second seed has few distinct costs, so that many assignments tie.
    for (auto& cost : costs)
      cost = seed % 2 == 0 ? rng.uniform(-2, 3) : static_cast<double>(rng.below(3));
    const auto column_of = assign(costs, rows, columns);
    EXPECT_NEAR(sum_of(costs, columns, column_of), least_sum(costs, rows, columns), 1e-12) << seed;
    auto taken = column_of;
    std::erase(taken, -1);
    EXPECT_EQ(std::ssize(taken), std::min(rows, columns)) << seed;
    std::ranges::sort(taken);
    EXPECT_EQ(std::ranges::adjacent_find(taken), taken.end()) << seed;
  }
}

TEST(Assign, ReassignsEarlierRowsIfCheaper) {
  EXPECT_THAT(assign(std::vector<double>{1, 2, 1, 9}, 2, 2), ElementsAre(1, 0));
}

TEST(Assign, PrefersFirstOfEqualColumns) {
  EXPECT_THAT(assign(std::vector<double>(12, 7.0), 3, 4), ElementsAre(0, 1, 2));
}

TEST(Assign, LeavesRowsUnassignedIfTooFewColumns) {
  EXPECT_THAT(assign(std::vector<double>{5, 1, 3}, 3, 1), ElementsAre(-1, 0, -1));
  EXPECT_THAT(assign({}, 0, 7), IsEmpty());
  EXPECT_THAT(assign({}, 2, 0), ElementsAre(-1, -1));
}

TEST(Assign, RejectsMissingOrNonFiniteCosts) {
  EXPECT_THROW(assign(std::vector<double>{1, 2, 3}, 2, 2), std::invalid_argument);
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(assign(std::vector<double>{1, bad}, 1, 2), std::invalid_argument);
}

}  // namespace
}  // namespace millrace::rtdetr
