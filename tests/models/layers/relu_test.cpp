#include "millrace/models/layers/relu.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

TEST(Relu, MatchesOutOfPlaceRelu) {
  const auto x = at::randn({3, 5}), gradient = at::randn({3, 5});
  const auto leaf = x.clone().requires_grad_(), other = x.clone().requires_grad_();
  const auto y = leaf * 2, result = relu_in_place(y);
  EXPECT_EQ(result.const_data_ptr(), y.const_data_ptr());
  EXPECT_TRUE(tensors_equal(result, at::relu(other * 2)));
  result.backward(gradient);
  at::relu(other * 2).backward(gradient);
  EXPECT_TRUE(tensors_equal(leaf.grad(), other.grad()));
}

TEST(Relu, ComputesUnsharedGradientInPlace) {
  const auto y = at::relu(at::randn({4, 4}));
  auto gradient = at::randn({4, 4});
  const auto kept = gradient, copy = gradient.clone();
  const auto apart = before_relu(gradient, y);
  EXPECT_TRUE(tensors_equal(kept, copy));
  EXPECT_TRUE(tensors_equal(apart, copy * (y > 0)));
  gradient = copy.clone();
  const auto* const memory = gradient.const_data_ptr();
  const auto in_place = before_relu(std::move(gradient), y);
  EXPECT_EQ(in_place.const_data_ptr(), memory);
  EXPECT_TRUE(tensors_equal(in_place, apart));
}

}  // namespace
}  // namespace millrace::testing
