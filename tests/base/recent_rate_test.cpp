// The rate covers the most recent additions and falls while nothing is added.
#include "millrace/base/recent_rate.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

Clock::time_point at(int second) { return Clock::time_point(std::chrono::seconds(second)); }

TEST(RecentRate, IsAddedAmountOverTime) {
  RecentRate rate;
  EXPECT_EQ(rate.per_second(at(1)), 0);
  rate.add(1000, at(1));  // starts the measurement
  EXPECT_EQ(rate.per_second(at(2)), 0);
  rate.add(4, at(2));
  rate.add(4, at(3));
  EXPECT_DOUBLE_EQ(rate.per_second(at(3)), 4);
}

TEST(RecentRate, FallsWithoutAdditions) {
  RecentRate rate;
  rate.add(0, at(0));
  rate.add(4, at(1));
  EXPECT_DOUBLE_EQ(rate.per_second(at(2)), 2);
  EXPECT_DOUBLE_EQ(rate.per_second(at(100)), 0.04);
}

TEST(RecentRate, CoversLastTwentyAdditions) {
  RecentRate rate;
  for (int second = 0; second < 100; ++second) rate.add(1, at(second));
  for (int second = 100; second < 121; ++second) rate.add(8, at(second));
  EXPECT_DOUBLE_EQ(rate.per_second(at(120)), 8);
}

}  // namespace
}  // namespace millrace
