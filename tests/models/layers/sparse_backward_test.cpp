// The backward pass of a convolution, computed only from pixels whose gradient is not zero.
#include "millrace/models/ops/cpu/sparse_backward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <vector>

#include "millrace/models/layers/convolution.h"
#include "tests/models/operators.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

constexpr auto kLast = at::MemoryFormat::ChannelsLast;
constexpr std::array kAll{true, true, true};

/// Input channels, output channels, kernel, stride.
class SparseBackward : public ::testing::TestWithParam<std::array<std::int64_t, 4>> {
 protected:
  void SetUp() override {
    const auto [in, out, kernel, stride] = GetParam();
    at::manual_seed(5);
    c_ = {.stride = stride, .padding = kernel / 2};
    x_ = at::randn({2, in, 40, 61}).contiguous(kLast);
    weight_ = at::randn({out, in, kernel, kernel}).contiguous(kLast);
    gradient_ = at::zeros({2, out, (40 + stride - 1) / stride, (61 + stride - 1) / stride})
                    .contiguous(kLast);
    // Corners, neighbours and isolated pixels, one of them with a gradient in only one channel.
    const auto height = gradient_.size(2), width = gradient_.size(3);
    for (const auto& [image, y, column] :
         std::vector<std::array<std::int64_t, 3>>{{0, 0, 0},
                                                  {0, 0, width - 1},
                                                  {1, height - 1, 0},
                                                  {1, height - 1, width - 1},
                                                  {1, 7, 9},
                                                  {1, 7, 10},
                                                  {1, 8, 9},
                                                  {0, 13, 2}})
      gradient_[image].narrow(1, y, 1).narrow(2, column, 1).copy_(at::randn({out, 1, 1}));
    gradient_[0][out - 1][5][5].fill_(2);
  }

  std::tuple<at::Tensor, at::Tensor, at::Tensor> sparse() const {
    const auto [dx, dw, db] = sparse_backward(gradient_, {touched_pixels(gradient_)}, x_, weight_,
                                              c_.stride, c_.padding, kAll);
    return {dx[0], dw, db};
  }
  auto dense() const {
    const std::array one{1L, 1L}, none{0L, 0L}, strides{c_.stride, c_.stride},
        paddings{c_.padding, c_.padding};
    const std::array biases{weight_.size(0)};
    const auto exact = [](const at::Tensor& x) { return x.to(at::kDouble); };
    return at::convolution_backward(exact(gradient_), exact(x_), exact(weight_),
                                    at::OptionalIntArrayRef(biases), strides, paddings, one, false,
                                    none, 1, kAll);
  }

  Convolution c_;
  at::Tensor x_, weight_, gradient_;
};

INSTANTIATE_TEST_SUITE_P(Kinds, SparseBackward,
                         ::testing::Values(std::array<std::int64_t, 4>{64, 15, 1, 1},
                                           std::array<std::int64_t, 4>{32, 48, 3, 1},
                                           std::array<std::int64_t, 4>{20, 7, 3, 2},
                                           std::array<std::int64_t, 4>{3, 16, 7, 2},
                                           std::array<std::int64_t, 4>{32, 8, 1, 2}));

TEST_P(SparseBackward, MatchesDenseBackward) {
  const auto [dx, dw, db] = sparse();
  const auto [exact_dx, exact_dw, exact_db] = dense();
  EXPECT_TRUE(tensors_close(dx, exact_dx, 1e-6));
  EXPECT_TRUE(tensors_close(dw, exact_dw, 1e-6));
  EXPECT_TRUE(tensors_close(db, exact_db, 1e-6));
}

TEST_P(SparseBackward, DoesNotDependOnThreadCount) {
  expect_same_on_any_threads([&] {
    const auto [dx, dw, db] = sparse();
    return std::vector{dx, dw, db};
  });
}

TEST_P(SparseBackward, RoundsOnlyBf16InputAndOutput) {
  const auto rounded = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  x_ = rounded(x_), weight_ = rounded(weight_), gradient_ = rounded(gradient_);
  const auto [dx, dw, db] = sparse();
  EXPECT_EQ(dx.scalar_type(), at::kBFloat16);
  const auto [exact_dx, exact_dw, exact_db] = dense();
  EXPECT_TRUE(tensors_close(dx, exact_dx, 4e-3));
  EXPECT_TRUE(tensors_close(dw, exact_dw, 1e-6));
  EXPECT_TRUE(tensors_close(db, exact_db, 1e-6));
}

TEST_P(SparseBackward, SumsGradientsOfSeveralMaps) {
  // The second map has no pixel with a gradient; the third map is the first again.
  const std::vector maps{x_, at::randn({1, x_.size(1), 5, 6}).contiguous(kLast), x_};
  const auto no_gradient = at::conv2d(maps[1], weight_, {}, c_.stride, c_.padding).zero_();
  const std::vector gradients{gradient_, no_gradient.contiguous(kLast), gradient_};
  std::vector<TouchedPixels> touched;
  for (const auto& gradient : gradients) touched.push_back(touched_pixels(gradient));
  const auto [dx, dw, db] =
      sparse_backward(gradients, touched, maps, weight_, c_.stride, c_.padding, kAll);
  const auto [own_dx, own_dw, own_db] = sparse();
  EXPECT_TRUE(tensors_equal(dx[0], own_dx));
  EXPECT_TRUE(tensors_equal(dx[1], at::zeros_like(maps[1])));
  EXPECT_TRUE(tensors_equal(dx[2], own_dx));
  EXPECT_TRUE(tensors_close(dw, own_dw * 2, 1e-6));
  EXPECT_TRUE(tensors_close(db, own_db * 2, 1e-6));
}

TEST_P(SparseBackward, ReturnsZeroWithoutTouchedPixels) {
  gradient_.zero_();
  const auto [dx, dw, db] = sparse();
  EXPECT_TRUE(tensors_equal(dx, at::zeros_like(x_)));
  EXPECT_TRUE(tensors_equal(dw, at::zeros_like(weight_)));
  EXPECT_TRUE(tensors_equal(db, at::zeros({weight_.size(0)})));
}

TEST_P(SparseBackward, IsUsedForSparseGradients) {
  const auto x = x_.clone().requires_grad_(), weight = weight_.clone().requires_grad_(),
             bias = at::zeros({weight_.size(0)}).requires_grad_();
  auto c = c_;
  c.weight = weight, c.bias = bias;
  convolve(x, c).backward(gradient_);
  const auto [dx, dw, db] = sparse();
  EXPECT_TRUE(tensors_equal(x.grad(), dx));
  EXPECT_TRUE(tensors_equal(weight.grad(), dw));
  EXPECT_TRUE(tensors_equal(bias.grad(), db));
}

TEST(TouchedPixels, HaveNonZeroChannels) {
  auto gradient = at::zeros({2, 3, 4, 5}).contiguous(kLast);
  gradient[1][2][3][4].fill_(1e-30);
  gradient[0][0][0][1].fill_(NAN);
  const auto touched = touched_pixels(gradient);
  ASSERT_EQ(touched.is.size(), 40U);
  EXPECT_EQ(touched.count, 2);
  EXPECT_EQ(touched.is[39], 1);
  EXPECT_EQ(touched.is[1], 1);
}

}  // namespace
}  // namespace millrace::testing
