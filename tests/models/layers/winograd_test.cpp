#include "millrace/models/ops/cpu/winograd.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include "millrace/models/layers/convolution.h"
#include "tests/models/operators.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;

/// Returns a generator with a fixed seed.
at::Generator& generator() {
  static auto seeded = at::detail::createCPUGenerator(7);
  return seeded;
}

at::Tensor random(at::IntArrayRef shape) {
  return at::randn(shape, generator())
      .contiguous(shape.size() == 4 ? kChannelsLast : at::MemoryFormat::Contiguous);
}

/// Runs winograd() on one map.
at::Tensor winograd_of(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {},
                       const at::Tensor& add = {}, bool relu = false) {
  return winograd(x, weight, bias, add.defined() ? at::TensorList(add) : at::TensorList(), relu)[0];
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> gradients_of(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight,
    std::array<bool, 3> wanted = {true, true, true}) {
  const auto [dx, dw, db] = winograd_backward(gradient, x, weight, wanted);
  return {dx.empty() ? at::Tensor() : dx[0], dw, db};
}

/// Returns the norm of the error relative to the norm of `exact`.
double relative_error(const at::Tensor& x, const at::Tensor& exact) {
  return ((x.to(at::kDouble) - exact).norm() / exact.norm()).item<double>();
}

/// Returns the gradients of x, weight and bias by direct convolution, computed in `type`.
std::tuple<at::Tensor, at::Tensor, at::Tensor> direct_backward(const at::Tensor& gradient,
                                                               const at::Tensor& x,
                                                               const at::Tensor& weight,
                                                               at::ScalarType type) {
  const std::array<std::int64_t, 2> one{1, 1}, zero{0, 0};
  const std::array<std::int64_t, 1> bias{weight.size(0)};
  return at::convolution_backward(gradient.to(type), x.to(type), weight.to(type),
                                  at::OptionalIntArrayRef(bias), one, one, one, false, zero, 1,
                                  {true, true, true});
}

/// Images, input channels, output channels, height, width.
class WinogradConvolution : public ::testing::TestWithParam<std::array<std::int64_t, 5>> {
 protected:
  void SetUp() override {
    const auto [images, in, out, height, width] = GetParam();
    x_ = random({images, in, height, width});
    weight_ = (random({out, in, 3, 3}) / 24).contiguous(kChannelsLast);
    bias_ = random({out});
    add_ = random({images, out, height, width});
    gradient_ = random({images, out, height, width});
  }

  auto backward() const { return gradients_of(gradient_, x_, weight_); }
  auto direct_backward(at::ScalarType type) const {
    return testing::direct_backward(gradient_, x_, weight_, type);
  }

  void expect_gradients_of_direct_sums() const {
    const auto [x, weight, bias] = backward();
    const auto [exact_x, exact_weight, exact_bias] = direct_backward(at::kDouble);
    EXPECT_LT(relative_error(x, exact_x), 4e-6);
    EXPECT_LT(relative_error(weight, exact_weight), 4e-6);
    EXPECT_LT(relative_error(bias, exact_bias), 4e-6);
  }

  at::Tensor x_, weight_, bias_, add_, gradient_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradConvolution,
                         ::testing::Values(std::array<std::int64_t, 5>{1, 64, 64, 14, 14},
                                           std::array<std::int64_t, 5>{3, 64, 96, 15, 17},
                                           std::array<std::int64_t, 5>{2, 256, 64, 33, 16},
                                           std::array<std::int64_t, 5>{1, 96, 256, 2, 200},
                                           std::array<std::int64_t, 5>{9, 32, 32, 64, 65},
                                           std::array<std::int64_t, 5>{1, 48, 112, 21, 18},
                                           std::array<std::int64_t, 5>{1, 64, 64, 199, 3}));

TEST_P(WinogradConvolution, MatchesDirectConvolution) {
  ASSERT_TRUE(winograd_fits(x_, weight_));
  const auto exact = at::conv2d(x_.to(at::kDouble), weight_.to(at::kDouble), {}, 1, 1);
  const auto shift = bias_.to(at::kDouble).view({1, -1, 1, 1});
  const auto bound = 4 * relative_error(at::conv2d(x_, weight_, {}, 1, 1), exact);
  EXPECT_LT(relative_error(winograd_of(x_, weight_), exact), bound);
  EXPECT_LT(relative_error(winograd_of(x_, weight_, bias_), exact + shift), bound);
  EXPECT_LT(
      relative_error(winograd_of(x_, weight_, bias_, add_, true), (exact + shift + add_).relu()),
      bound);
}

TEST_P(WinogradConvolution, MatchesGradientsOfDirectConvolution) {
  expect_gradients_of_direct_sums();
}

TEST_P(WinogradConvolution, MatchesSparseGradients) {
  const auto shape = gradient_.sizes();
  gradient_ = (gradient_ * at::rand({shape[0], 1, shape[2], shape[3]}, generator()).lt(0.03))
                  .contiguous(kChannelsLast);
  expect_gradients_of_direct_sums();
}

TEST_P(WinogradConvolution, SkipsTilesWithoutGradient) {
  const auto height = gradient_.size(2), width = gradient_.size(3);
  auto part = at::zeros_like(gradient_);
  const auto bottom = [&](const at::Tensor& map) {
    return map.narrow(0, 0, 1).narrow(2, height - 1, 1).narrow(3, width / 2, 1);
  };
  bottom(part).copy_(bottom(gradient_));
  gradient_ = part;
  const auto [exact_x, exact_weight, exact_bias] = direct_backward(at::kDouble);
  if (height * width > 200) x_.narrow(0, 0, 1).narrow(2, 0, 1).narrow(3, 0, 1).fill_(NAN);
  const auto [x, weight, bias] = backward();
  EXPECT_LT(relative_error(x, exact_x), 4e-6);
  EXPECT_LT(relative_error(weight, exact_weight), 4e-6);
  EXPECT_LT(relative_error(bias, exact_bias), 4e-6);
  gradient_.zero_();
  const auto [no_x, no_weight, no_bias] = backward();
  EXPECT_TRUE(tensors_equal(no_x, at::zeros_like(x_)));
  EXPECT_TRUE(tensors_equal(no_weight, at::zeros_like(weight_)));
}

TEST_P(WinogradConvolution, DoesNotDependOnThreadCount) {
  expect_same_on_any_threads([&] {
    const auto [x, weight, bias] = backward();
    return std::vector{winograd_of(x_, weight_, bias_, add_, true), x, weight, bias};
  });
}

TEST_P(WinogradConvolution, DoesNotDependOnOtherImages) {
  const auto y = winograd_of(x_, weight_, bias_, add_, true);
  const auto dx = std::get<0>(backward());
  for (std::int64_t i = 0; i < x_.size(0); ++i) {
    const auto one = [&](const at::Tensor& batch) { return batch.narrow(0, i, 1); };
    EXPECT_TRUE(tensors_equal(winograd_of(one(x_), weight_, bias_, one(add_), true), one(y)))
        << "image " << i;
    EXPECT_TRUE(tensors_equal(
        std::get<0>(gradients_of(one(gradient_), one(x_), weight_, {true, false, false})), one(dx)))
        << "image " << i;
  }
}

TEST_P(WinogradConvolution, ReturnsOnlyRequestedGradients) {
  for (const std::array<bool, 3> wanted :
       {std::array{true, false, false}, std::array{false, true, false},
        std::array{false, true, true}}) {
    const auto [x, weight, bias] = gradients_of(gradient_, x_, weight_, wanted);
    EXPECT_EQ(x.defined(), wanted[0]);
    EXPECT_EQ(weight.defined(), wanted[1]);
    EXPECT_EQ(bias.defined(), wanted[2]);
  }
}

TEST_P(WinogradConvolution, RoundsOnlyBf16InputAndOutput) {
  const auto bf16 = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  const auto x = bf16(x_), weight = bf16(weight_), bias = bf16(bias_), add = bf16(add_),
             gradient = bf16(gradient_);
  const auto in_float = [](const at::Tensor& value) { return value.to(at::kFloat); };
  EXPECT_TRUE(tensors_equal(
      winograd_of(x, weight, bias, add, true),
      bf16(winograd_of(in_float(x), in_float(weight), in_float(bias), in_float(add), true))));
  const auto [dx, dw, db] = gradients_of(gradient, x, weight);
  const auto [float_dx, float_dw, float_db] =
      gradients_of(in_float(gradient), in_float(x), in_float(weight));
  EXPECT_TRUE(tensors_equal(dx, bf16(float_dx)));
  EXPECT_TRUE(tensors_equal(dw, float_dw));
  EXPECT_LT(relative_error(db, float_db.to(at::kDouble)), 1e-6);
}

TEST(Winograd, PropagatesNaNThroughRelu) {
  auto x = random({1, 64, 32, 32});
  x[0][5][7][7].fill_(NAN);
  const auto y = winograd_of(x, random({64, 64, 3, 3}), {}, {}, true);
  EXPECT_TRUE(y[0][0][7][7].isnan().item<bool>());
  EXPECT_TRUE(y[0][0][20][20].isfinite().item<bool>());
}

TEST(Winograd, PropagatesNonFiniteBf16Values) {
  for (const float odd : {NAN, INFINITY}) {
    auto x = random({1, 64, 32, 32});
    x[0][5][7][7].fill_(odd);
    const auto y = winograd_of(x.to(at::kBFloat16), random({64, 64, 3, 3}).to(at::kBFloat16));
    EXPECT_FALSE(y[0][0][7][7].isfinite().item<bool>());
    EXPECT_TRUE(y[0][0][20][20].isfinite().item<bool>());
  }
}

TEST(Winograd, IsUsedForStrideOne) {
  const auto x = random({1, 64, 20, 20}).requires_grad_(),
             weight = random({64, 64, 3, 3}).requires_grad_();
  const Convolution convolution{.weight = weight, .padding = 1};
  const auto y = convolve(x, convolution);
  EXPECT_TRUE(tensors_equal(y, winograd_of(x, weight)));
  const auto gradient = random({1, 64, 20, 20});
  y.backward(gradient);
  const auto [dx, dw, db] =
      gradients_of(gradient, x.detach(), weight.detach(), {true, true, false});
  EXPECT_TRUE(tensors_equal(x.grad(), dx));
  EXPECT_TRUE(tensors_equal(weight.grad(), dw));
  const at::NoGradGuard no_grad;
  EXPECT_EQ(convolve(x, {.weight = weight, .stride = 2, .padding = 1}).size(2), 10);
  EXPECT_EQ(convolve(x, {.weight = weight, .padding = 0}).size(2), 18);
  EXPECT_EQ(convolve(x, {.weight = random({64, 1, 3, 3}), .padding = 1, .groups = 64}).size(2), 20);
}

/// Returns the maps of a pyramid; the last one is smaller than a tile.
std::vector<at::Tensor> pyramid(std::int64_t channels) {
  return {random({2, channels, 24, 20}), random({2, channels, 12, 10}), random({2, channels, 6, 5}),
          random({2, channels, 3, 2})};
}

TEST(Winograd, MatchesWinogradOfEachMap) {
  const auto maps = pyramid(32), add = pyramid(48), gradients = pyramid(48);
  const auto weight = random({48, 32, 3, 3}), bias = random({48});
  const auto together = winograd(maps, weight, bias, add, true);
  const auto [dx, dw, db] = winograd_backward(gradients, maps, weight, {true, true, true});
  auto sum_dw = at::zeros_like(weight), sum_db = at::zeros_like(bias);
  auto exact_dw = at::zeros_like(weight, at::kDouble), exact_db = at::zeros_like(bias, at::kDouble);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    EXPECT_TRUE(tensors_equal(together[i], winograd_of(maps[i], weight, bias, add[i], true))) << i;
    const auto [own_dx, own_dw, own_db] = gradients_of(gradients[i], maps[i], weight);
    EXPECT_TRUE(tensors_equal(dx[i], own_dx)) << i;
    sum_dw += own_dw, sum_db += own_db;
    const auto [x, w, b] = direct_backward(gradients[i], maps[i], weight, at::kDouble);
    exact_dw += w, exact_db += b;
  }
  // The order of summation differs and so does rounding, but the error is at most twice that of the
  // separate sums.
  EXPECT_LT(relative_error(dw, exact_dw), 2 * relative_error(sum_dw, exact_dw));
  EXPECT_LT(relative_error(db, exact_db), 2 * relative_error(sum_db, exact_db));
  expect_same_on_any_threads([&] {
    const auto [x, w, b] = winograd_backward(gradients, maps, weight, {true, true, true});
    auto all = x;
    all.insert(all.end(), {w, b});
    return all;
  });
}

TEST(Winograd, IsUsedOnlyForSuitableConvolutions) {
  const auto weight = random({64, 64, 3, 3});
  EXPECT_TRUE(winograd_fits(random({1, 64, 14, 14}), weight));
  EXPECT_FALSE(winograd_fits(random({9, 64, 7, 7}), weight));
  EXPECT_FALSE(winograd_fits(random({1, 64, 1, 200}), weight));
  EXPECT_FALSE(winograd_fits(random({2, 512, 12, 10}), random({512, 512, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({2, 1024, 16, 16}), random({1024, 1024, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({0, 64, 14, 14}), weight));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}), random({64, 64, 1, 1})));
  EXPECT_TRUE(winograd_fits(random({1, 48, 14, 14}), random({720, 48, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({1, 16, 14, 14}), random({16, 16, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}), random({91, 64, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}).to(at::kBFloat16), weight));
  // Small maps beside large ones cost little, but a map without pixels is rejected.
  EXPECT_TRUE(winograd_fits({random({1, 64, 14, 14}), random({1, 64, 1, 2})}, weight));
  EXPECT_TRUE(winograd_fits({random({1, 64, 8, 8}), random({1, 64, 8, 8})}, weight));
  EXPECT_FALSE(winograd_fits({random({1, 64, 14, 14}), random({1, 64, 0, 2})}, weight));
}

}  // namespace
}  // namespace millrace::testing
