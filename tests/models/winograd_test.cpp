#include "millrace/models/layers/winograd.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "millrace/models/layers/convolution.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

at::Tensor random(at::IntArrayRef shape) {
  return at::randn(shape).contiguous(shape.size() == 4 ? at::MemoryFormat::ChannelsLast
                                                       : at::MemoryFormat::Contiguous);
}

/// Images, channels in and out, height, width.
class WinogradOf : public ::testing::TestWithParam<std::array<std::int64_t, 5>> {
 protected:
  void SetUp() override {
    const auto [images, in, out, height, width] = GetParam();
    x_ = random({images, in, height, width});
    weight_ = random({out, in, 3, 3}) / 24;
    bias_ = random({out});
    add_ = random({images, out, height, width});
  }

  at::Tensor x_, weight_, bias_, add_;
};

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradOf,
                         ::testing::Values(std::array<std::int64_t, 5>{1, 64, 64, 14, 14},
                                           std::array<std::int64_t, 5>{3, 64, 80, 15, 17},
                                           std::array<std::int64_t, 5>{2, 256, 64, 33, 16},
                                           std::array<std::int64_t, 5>{1, 80, 256, 1, 200},
                                           std::array<std::int64_t, 5>{1, 64, 64, 199, 1}));

TEST_P(WinogradOf, IsAsExactAsTheSumThatItReplaces) {
  ASSERT_TRUE(winograd_fits(x_, weight_));
  const auto exact = at::conv2d(x_.to(at::kDouble), weight_.to(at::kDouble), {}, 1, 1);
  const auto shift = bias_.to(at::kDouble).view({1, -1, 1, 1});
  EXPECT_TRUE(close(winograd(x_, weight_, {}, {}), exact, 2e-6));
  EXPECT_TRUE(close(winograd(x_, weight_, bias_, {}), exact + shift, 2e-6));
  EXPECT_TRUE(close(winograd(x_, weight_, bias_, {add_, Activation::relu}),
                    (exact + shift + add_).relu(), 2e-6));
}

TEST_P(WinogradOf, GivesTheSameBytesForAnyThreadsAndBatch) {
  const auto threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = winograd(x_, weight_, bias_, {add_, Activation::relu});
  at::set_num_threads(3);
  EXPECT_TRUE(same(winograd(x_, weight_, bias_, {add_, Activation::relu}), expected));
  for (std::int64_t i = 0; i < x_.size(0); ++i)
    EXPECT_TRUE(
        same(winograd(x_.narrow(0, i, 1), weight_, bias_, {add_.narrow(0, i, 1), Activation::relu}),
             expected.narrow(0, i, 1)))
        << "image " << i;
  at::set_num_threads(threads);
}

TEST(Winograd, IsForDetectionOnly) {
  const at::NoGradGuard no_grad;
  const auto x = random({1, 64, 20, 20}), weight = random({64, 64, 3, 3});
  const Convolution convolution{.weight = weight, .padding = 1};
  const auto plain = convolve(x, convolution);
  {
    const Winograd fast;
    EXPECT_TRUE(same(convolve(x, convolution), winograd(x, weight, {}, {})));
    EXPECT_FALSE(same(convolve(x, convolution), plain));
    const Convolution strided{.weight = weight, .stride = 2, .padding = 1};
    EXPECT_EQ(convolve(x, strided).size(2), 10);
  }
  EXPECT_TRUE(same(convolve(x, convolution), plain));
}

TEST(Winograd, LeavesSmallMapsAndFewChannelsAlone) {
  const auto weight = random({64, 64, 3, 3});
  EXPECT_TRUE(winograd_fits(random({1, 64, 14, 14}), weight));
  EXPECT_FALSE(winograd_fits(random({9, 64, 13, 15}), weight));
  EXPECT_FALSE(winograd_fits(random({0, 64, 14, 14}), weight));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}), random({64, 64, 1, 1})));
  EXPECT_FALSE(winograd_fits(random({1, 32, 14, 14}), random({64, 32, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}), random({91, 64, 3, 3})));
  EXPECT_FALSE(winograd_fits(random({1, 64, 14, 14}).to(at::kBFloat16), weight));
}

}  // namespace
}  // namespace millrace::testing
