// Micro-batches that a rank computes in parallel, and the tree sum of their gradients.
#include "millrace/trainer/cluster/micro_batches.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <string>

#include "millrace/base/errors.h"
#include "millrace/base/random.h"
#include "millrace/base/tree_sum.h"
#include "millrace/trainer/cluster/gradient_buckets.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

TEST(TreeSum, MatchesSumOfBlockSums) {
  const auto text = [](std::size_t i) { return std::to_string(i); };
  const auto add = [](const std::string& a, const std::string& b) {
    return "(" + a + "+" + b + ")";
  };
  EXPECT_EQ(tree_sum(5, text, add), "(((0+1)+2)+(3+4))");
  for (const std::size_t block : {1, 2, 3, 5, 6})
    for (const std::size_t blocks : {1, 2, 4, 8}) {
      const auto of_block = [&](std::size_t i) { return tree_sum(block, text, add, i * block); };
      EXPECT_EQ(tree_sum(blocks, of_block, add), tree_sum(block * blocks, text, add));
    }
}

TEST(TensorTree, AddsInFixedOrder) {
  Rng rng{1};
  for (const std::size_t count : {1, 2, 3, 6, 8}) {
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < count; ++i) leaves.push_back(at::full({1}, rng.normal()));
    const auto expected = tree_sum(count, [&](std::size_t i) { return leaves[i]; });
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    do {
      TensorTree tree(count);
      for (const auto number : order) {
        tree.add(number, leaves[number]);
        tree.complete(number);
      }
      ASSERT_TRUE(tensors_equal(tree.sum(), expected));
    } while (count < 8 && std::next_permutation(order.begin(), order.end()));
  }
}

TEST(TensorTree, TreatsMissingTensorsAsZero) {
  TensorTree one(4), none(4);
  one.add(1, at::full({1}, -0.0));
  for (const std::size_t number : {3, 1, 0, 2}) one.complete(number), none.complete(number);
  EXPECT_FALSE(std::signbit(one.sum().item<float>()));  // since -0 + 0 is 0
  EXPECT_FALSE(none.sum().defined());
}

TEST(MicroBatches, ShareJoinedResult) {
  for (const std::size_t at_once : {1, 2, 5}) {
    MicroBatches all(5, at_once);
    std::array<double, 5> sums{};
    for (int pass = 0; pass < 3; ++pass)
      all.run([&](std::size_t number) {
        EXPECT_EQ(MicroBatches::current(), number);
        double own = static_cast<double>(number);
        for (int meeting = 0; meeting < 50; ++meeting)
          own = all.join("sums", own + static_cast<double>(number == 0), [](const auto& given) {
            return std::accumulate(given.begin(), given.end(), 0.0) / 5;
          });
        sums[number] = own;
      });
    EXPECT_THAT(sums, Each(sums[0]));
    EXPECT_NEAR(sums[0], 12, 1e-9);  // (0 + 1 + 2 + 3 + 4) / 5 + 50 / 5
  }
}

TEST(MicroBatches, EndTogetherIfOneFails) {
  MicroBatches all(4, 2);
  const auto meet = [&] { return all.join("sums", 0, [](const auto&) { return 0; }); };
  EXPECT_EQ(message_of([&] {
              all.run([&](std::size_t number) {
                meet();
                if (number == 2) throw Error("number two");
                meet();
              });
            }),
            "number two");
  EXPECT_THAT(message_of([&] {
                all.run([&](std::size_t number) {
                  if (number > 0) meet();
                });
              }),
              HasSubstr("'sums'"));
  EXPECT_THAT(message_of([&] {
                all.run([&](std::size_t number) {
                  all.join(number == 1 ? "one" : "other", 0, [](const auto&) { return 0; });
                });
              }),
              AllOf(HasSubstr("'one'"), HasSubstr("'other'")));
  all.run([&](std::size_t) { meet(); });  // works again after a failure
}

}  // namespace
}  // namespace millrace::testing
