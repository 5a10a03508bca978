// Runs on every rank: messages between ranks, and the all-reduce of gradients.
#include "millrace/trainer/cluster/cluster.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>

#include <set>

#include "millrace/base/random.h"
#include "millrace/base/tree_sum.h"
#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/cluster/processors.h"
#include "tests/support/ranks_main.h"

namespace millrace::testing {
namespace {

std::string text_of(std::int64_t rank) {
  return std::string(static_cast<std::size_t>(rank * rank * 200), static_cast<char>('a' + rank));
}

TEST(Cluster, GathersStringsByRank) {
  const auto all = cluster->gather("texts", text_of(cluster->rank()));
  ASSERT_EQ(std::ssize(all), cluster->size());
  for (std::int64_t rank = 0; rank < cluster->size(); ++rank)
    EXPECT_EQ(all[static_cast<std::size_t>(rank)], text_of(rank));
}

TEST(Cluster, BroadcastsFromRank0) {
  const auto heard = cluster->broadcast("word", cluster->is_chief() ? "the chief's" : "mine");
  EXPECT_EQ(heard, "the chief's");
}

TEST(Cluster, GathersNumbersByRank) {
  std::vector<double> expected;
  for (std::int64_t rank = 0; rank < cluster->size(); ++rank)
    expected.insert(expected.end(), {0.1 * static_cast<double>(rank), 1.0});
  EXPECT_EQ(
      cluster->numbers("numbers", std::vector{0.1 * static_cast<double>(cluster->rank()), 1.0}),
      expected);
}

TEST(Cluster, CountsRanksOnHost) {
  EXPECT_EQ(cluster->local_size(), cluster->size());  // all ranks are on one host
  EXPECT_EQ(cluster->local_rank(), cluster->rank());
}

TEST(Cluster, BindsRanksToProcessorShares) {
  const std::vector<Processors> before(static_cast<std::size_t>(cluster->size()),
                                       allowed_processors());
  bind_to_share(*cluster);
  EXPECT_EQ(allowed_processors(),
            share_of_processors(before, static_cast<std::size_t>(cluster->rank())));
  // Each rank has its own cores, or all ranks share all cores if there are fewer cores than ranks.
  const auto shares = cluster->gather("shares", allowed_processors());
  const auto different = std::set(shares.begin(), shares.end()).size();
  EXPECT_TRUE(different == shares.size() || different == 1) << different;
  bind_to_share(*cluster);  // a second call changes nothing
  EXPECT_EQ(allowed_processors(), shares[static_cast<std::size_t>(cluster->rank())]);
}

at::Tensor values_of(std::int64_t rank, std::int64_t count) {
  auto values = at::empty({count});
  Rng rng{static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(count)};
  for (std::int64_t i = 0; i < count; ++i)
    values.mutable_data_ptr<float>()[i] = static_cast<float>(rng.normal());
  return values;
}

TEST(GradientSync, IsBitIdenticalToTreeSum) {
  if (cluster->size() == 1) GTEST_SKIP() << "one rank has nothing to reduce";
  const auto sync = gradient_syncs().at("cpu").create(Config(), *cluster, SumOrder::tree);
  for (int repeat = 0; repeat < 2; ++repeat) {
    std::vector<at::Tensor> sums, expected;
    for (const std::int64_t count : {1, 3, 1000, 1 << 18}) {
      expected.push_back(tree_sum(static_cast<std::size_t>(cluster->size()), [&](std::size_t rank) {
        return values_of(static_cast<std::int64_t>(rank), count);
      }));
      sums.push_back(values_of(cluster->rank(), count));
      sync->begin_sum(sums.back(), "gradients");
    }
    sync->wait();
    for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(at::equal(sums[i], expected[i]));
  }
}

TEST(GradientSync, RejectsUnsupportedType) {
  if (cluster->size() == 1) GTEST_SKIP() << "one rank has nothing to reduce";
  const auto sync = gradient_syncs().at("cpu").create(Config(), *cluster, SumOrder::tree);
  sync->begin_sum(at::empty({4}, at::kLong), "numbers");
  EXPECT_THROW(sync->wait(), Error);
  auto after = at::empty({4}).fill_(1);
  sync->begin_sum(after, "numbers");
  sync->wait();
  EXPECT_EQ(after[3].item<double>(), static_cast<double>(cluster->size()));
}

}  // namespace
}  // namespace millrace::testing
