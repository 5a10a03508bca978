// An all-reduce by messages between ranks, here threads, is bit-identical to one tree sum.
#include "millrace/trainer/cluster/tree_exchange.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>

#include <barrier>
#include <map>
#include <mutex>
#include <thread>

#include "millrace/base/tree_sum.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

/// Passes messages between ranks that are threads.
class Mail {
 public:
  explicit Mail(std::int64_t ranks) : all_here_(ranks) {}

  void exchange(std::int64_t rank, const std::vector<RankMessage>& sent,
                const std::vector<RankMessage>& received) {
    for (const auto& [to, values] : sent) {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(values.is_contiguous() && values.numel() > 0);
      EXPECT_TRUE(letters_.emplace(std::pair(rank, to), values.clone()).second);
    }
    all_here_.arrive_and_wait();
    for (const auto& [from, values] : received) {
      const std::lock_guard lock(mutex_);
      const auto letter = letters_.extract({from, rank});
      ASSERT_FALSE(letter.empty()) << "nothing from " << from << " to " << rank;
      ASSERT_EQ(letter.mapped().sizes(), values.sizes());
      values.copy_(letter.mapped());
    }
    all_here_.arrive_and_wait();
  }

  /// Call it only when all ranks are done.
  bool has_letters() const { return !letters_.empty(); }

 private:
  std::barrier<> all_here_;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor> letters_;
};

/// Returns the sum that each rank receives.
std::vector<at::Tensor> sums_of(const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> sums;
  for (const auto& own : values) sums.push_back(own.clone());
  const auto ranks = std::ssize(values);
  Mail mail(ranks);
  {
    std::vector<std::jthread> threads;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        sum_as_tree(
            sums[static_cast<std::size_t>(rank)], rank, ranks,
            [&](const auto& sent, const auto& received) { mail.exchange(rank, sent, received); });
      });
  }
  EXPECT_FALSE(mail.has_letters()) << "unread letters";
  return sums;
}

std::vector<at::Tensor> values_of(std::size_t count, at::IntArrayRef sizes, at::ScalarType type) {
  std::vector<at::Tensor> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(at::randn(sizes, type));
  return values;
}

TEST(SumAsTree, MatchesTreeForPowersOfTwo) {
  const auto leaves = values_of(16, {3, 41}, at::kFloat);
  const auto tree = [&](std::size_t count, std::size_t first) {
    return tree_sum(
        count, [&](std::size_t i) { return leaves[i]; }, std::plus<>(), first);
  };
  const auto expected = tree(leaves.size(), 0);
  for (const std::size_t ranks : {1, 2, 4, 8, 16}) {
    const auto own = leaves.size() / ranks;
    std::vector<at::Tensor> branches;
    for (std::size_t rank = 0; rank < ranks; ++rank) branches.push_back(tree(own, rank * own));
    for (const auto& sum : sums_of(branches)) EXPECT_TRUE(tensors_equal(sum, expected)) << ranks;
  }
}

TEST(SumAsTree, MatchesTreeForAnyRankCount) {
  for (const std::size_t ranks : {3, 5, 8})
    for (const std::int64_t count : {1, 2, 7, 100})
      for (const auto type : {at::kFloat, at::kDouble}) {
        const auto values = values_of(ranks, {count}, type);
        const auto expected = tree_sum(ranks, [&](std::size_t i) { return values[i]; });
        for (const auto& sum : sums_of(values))
          EXPECT_TRUE(tensors_equal(sum, expected)) << ranks << " ranks, " << count << " values";
      }
}

TEST(SumAsTree, RoundsHalfPrecisionOnce) {
  // bfloat16 values near 1 are 2^-7 apart, so 1 + 2^-8 + 2^-8 is 1 if each sum is rounded.
  std::vector<at::Tensor> values;
  for (const double value : {1.0, 0.00390625, 0.00390625, 0.0})
    values.push_back(at::full({5}, value, at::kBFloat16));
  for (const auto& sum : sums_of(values))
    EXPECT_TRUE(tensors_equal(sum, at::full({5}, 1.0078125, at::kBFloat16)));
}

}  // namespace
}  // namespace millrace::testing
