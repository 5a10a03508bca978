// The order of positions: the samples of an epoch and how they are shuffled.
#include "millrace/dataflow/engine/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

namespace millrace {
namespace {

std::vector<std::int64_t> epoch(const Order& order, std::int64_t number) {
  std::vector<std::int64_t> samples;
  for (std::int64_t place = 0; place < order.size(); ++place)
    samples.push_back(order.turn(number * order.size() + place).sample);
  return samples;
}

std::map<std::int64_t, int> counts(const std::vector<std::int64_t>& samples) {
  std::map<std::int64_t, int> result;
  for (const auto sample : samples) ++result[sample];
  return result;
}

TEST(Order, RoundsRepeatsUpOrDown) {
  const std::vector<double> repeats = {1, 2.5, 0.25, 3, 0, 1.25};
  const Order order(6, repeats, 9, {true});
  ASSERT_EQ(order.size(), 8);
  std::map<std::int64_t, int> total;
  constexpr int kEpochs = 2000;
  for (int e = 0; e < kEpochs; ++e) {
    const auto seen = counts(epoch(order, e));
    for (std::size_t i = 0; i < repeats.size(); ++i) {
      const int times = seen.contains(i) ? seen.at(i) : 0;
      total[i] += times;
      ASSERT_GE(times, std::floor(repeats[i])) << "sample " << i << ", epoch " << e;
      ASSERT_LE(times, std::ceil(repeats[i])) << "sample " << i << ", epoch " << e;
    }
  }
  for (std::size_t i = 0; i < repeats.size(); ++i)
    EXPECT_NEAR(total[i] / double{kEpochs}, repeats[i], 0.05) << "sample " << i;
}

TEST(Order, AssignsDistinctRandomStreamsToRepeats) {
  const Order order(2, {3, 2}, 9, {true});
  std::set<std::uint64_t> streams;
  for (std::int64_t place = 0; place < order.size(); ++place)
    streams.insert(order.turn(place).random_stream);
  EXPECT_EQ(streams.size(), 5U);
}

TEST(Order, OmitsSomeSamplesIfRepeatsAreSmall) {
  const Order order(1000, std::vector<double>(1000, 0.1), 1, {true});
  ASSERT_EQ(order.size(), 100);
  EXPECT_EQ(counts(epoch(order, 0)).size(), 100U) << "all different";
  std::set<std::int64_t> seen;
  for (int e = 0; e < 200; ++e)
    for (const auto sample : epoch(order, e)) seen.insert(sample);
  EXPECT_EQ(seen.size(), 1000U) << "each must occur in some epoch";
}

TEST(Order, ShufflesWindowsAndTheirContents) {
  constexpr std::int64_t kWindow = 8;
  const Order order(45, {}, 5, {true, kWindow});
  const auto samples = epoch(order, 3);
  EXPECT_EQ(std::set(samples.begin(), samples.end()).size(), 45U);
  for (std::size_t begin = 0; begin < samples.size(); begin += kWindow)
    for (std::size_t i = begin; i < std::min<std::size_t>(begin + kWindow, 45); ++i)
      EXPECT_EQ(samples[i] / kWindow, samples[begin] / kWindow) << "a window stays together";
  EXPECT_FALSE(std::ranges::is_sorted(samples));
  EXPECT_NE(samples, epoch(order, 4));
}

}  // namespace
}  // namespace millrace
