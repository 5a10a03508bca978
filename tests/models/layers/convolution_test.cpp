// A convolution fused with addition and ReLU has the same output and gradients as the three
// separate operations.
#include "millrace/models/layers/convolution.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "millrace/models/detector/precision.h"
#include "millrace/models/layers/layers.h"
#include "millrace/trainer/optimizer/optimizer.h"
#include "tests/support/optimizer_step.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

struct Case {
  std::int64_t kernel, stride;
  bool scale, bias, add, relu;
};

class ConvolutionCases : public ::testing::TestWithParam<Case> {
 protected:
  ConvolutionCases() {
    const auto [kernel, stride, scale, bias, add, relu] = GetParam();
    at::manual_seed(3);
    const auto leaf = [](at::Tensor t) { return t.set_requires_grad(true); };
    x = leaf(at::randn({2, 16, 9, 12}));
    c.weight = leaf(at::randn({24, 16, kernel, kernel}) * 0.1);
    if (scale) c.scale = at::rand({24}) + 0.5;
    if (bias) c.bias = leaf(at::randn({24}));
    c.stride = stride;
    c.padding = kernel / 2;
    const auto shape = at::conv2d(x, c.weight, {}, stride, c.padding).sizes().vec();
    if (add) after.add = leaf(at::randn(shape));
    after.activation = relu ? Activation::relu : Activation::none;
    gradient = at::randn(shape);
  }

  at::Tensor apart() const {
    const auto weight = c.scale.defined() ? c.weight * c.scale.view({-1, 1, 1, 1}) : c.weight;
    auto y = at::conv2d(x, weight, c.bias, c.stride, c.padding);
    if (after.add.defined()) y = y + after.add;
    return after.activation == Activation::relu ? at::relu(y) : y;
  }

  /// Returns the gradients of all leaves and clears them.
  std::vector<at::Tensor> gradients(const at::Tensor& y) {
    y.backward(gradient.to(y.scalar_type()));
    std::vector<at::Tensor> all;
    for (const auto& leaf : {x, c.weight, c.bias, after.add}) {
      if (!leaf.defined()) continue;
      all.push_back(leaf.grad().clone());
      leaf.mutable_grad().reset();
    }
    return all;
  }

  at::Tensor x, gradient;
  Convolution c;
  After after;
};

TEST_P(ConvolutionCases, MatchSeparateOperationsAndGradients) {
  const auto expected = apart(), actual = convolve(x, c, after);
  EXPECT_TRUE(tensors_close(actual, expected, 1e-6));
  const auto wanted = gradients(expected), got = gradients(actual);
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(tensors_close(got[i], wanted[i], 1e-5)) << i;
}

TEST_P(ConvolutionCases, ReturnFp32GradientsInBf16Mode) {
  const auto wanted = gradients(apart());
  at::Tensor y;
  {
    const ComputeIn bf16(at::kBFloat16, at::kCPU);
    y = convolve(x, c, after);
  }
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(tensors_close(y, apart(), 0.02));
  const auto got = gradients(y);
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].scalar_type(), at::kFloat);
    EXPECT_TRUE(tensors_close(got[i], wanted[i], 0.2)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ConvolutionCases,
    ::testing::Values(Case{1, 1, false, true, false, false}, Case{3, 1, false, true, false, true},
                      Case{1, 1, true, true, true, true}, Case{3, 2, true, true, false, true},
                      Case{1, 2, true, false, false, false}, Case{1, 1, false, true, true, false},
                      Case{7, 2, true, true, false, true}));

/// Input channels, output channels, kernel size; the cases use oneDNN and Winograd.
class SharedConvolution : public ::testing::TestWithParam<std::array<std::int64_t, 3>> {};

TEST_P(SharedConvolution, MatchesEachMapAndSumsGradients) {
  const auto [in, out, kernel] = GetParam();
  at::manual_seed(4);
  const auto leaf = [](at::Tensor t) { return t.set_requires_grad(true); };
  const Convolution c{.weight = leaf(at::randn({out, in, kernel, kernel}) * 0.1),
                      .bias = leaf(at::randn({out})),
                      .padding = kernel / 2};
  std::vector<at::Tensor> maps;
  for (const std::int64_t side : {20, 10, 5, 1})
    maps.push_back(leaf(at::randn({2, in, side, side})));
  maps[1].set_requires_grad(false);
  for (const auto activation : {Activation::none, Activation::relu, Activation::silu}) {
    std::vector<at::Tensor> results;
    const auto gradients = [&](const std::vector<at::Tensor>& outputs) {
      // The output of the last map is not used, so it has no gradient.
      auto loss = outputs[0].square().sum();
      for (std::size_t i = 1; i + 1 < maps.size(); ++i) loss = loss + outputs[i].square().sum();
      loss.backward();
      std::vector<at::Tensor> all;
      for (const auto& tensor : {maps[0], maps[2], c.weight, c.bias}) {
        all.push_back(tensor.grad().clone());
        tensor.mutable_grad().reset();
      }
      return all;
    };
    for (const auto& map : maps) {
      const auto y = at::conv2d(map, c.weight, c.bias, 1, c.padding);
      results.push_back(activation == Activation::none   ? y
                        : activation == Activation::relu ? at::relu(y)
                                                         : at::silu(y));
    }
    const auto together = convolve(maps, c, activation);
    for (std::size_t i = 0; i < maps.size(); ++i)
      EXPECT_TRUE(tensors_close(together[i], results[i], 1e-5)) << i;
    const auto expected = gradients(results), actual = gradients(together);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(tensors_close(actual[i], expected[i], 1e-5)) << i;
    EXPECT_FALSE(maps[1].grad().defined());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SharedConvolution,
                         ::testing::Values(std::array<std::int64_t, 3>{12, 20, 1},
                                           std::array<std::int64_t, 3>{12, 20, 3},
                                           std::array<std::int64_t, 3>{32, 64, 3}));

TEST(Convolution, ReturnsEmptyOutputForNoImages) {
  const auto y = convolve(at::rand({0, 4, 5, 5}), {at::rand({6, 4, 3, 3}), {}, at::rand({6}), 1, 1},
                          {.activation = Activation::relu});
  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{0, 6, 5, 5}));
}

TEST(ConvNorm, DetectsWithLatestWeights) {
  Parameters parameters;
  const Scope scope(parameters, 1);
  const ConvNorm layer(scope / "conv", scope / "bn", {4, 6, 3}, {Norm::frozen_bn});
  const auto x = at::rand({1, 4, 8, 8});
  const auto detect = [&] {
    const at::NoGradGuard no_grad;
    return layer(x, {});
  };
  const auto sgd = make_optimizer(parameters, {.lr = 1});
  for (int step = 0; step < 3; ++step) {
    const auto y = layer(x, {.training = true});
    EXPECT_TRUE(tensors_close(detect(), y.detach(), 1e-6)) << step;
    y.square().sum().backward();
    const auto before = detect();
    take_step(*sgd, 0.01);
    EXPECT_FALSE(tensors_close(detect(), before, 1e-4)) << step;
  }
}

TEST(ConvNorm, MatchesSeparateOperationsWithSilu) {
  for (const std::int64_t groups : {1, 4}) {
    Parameters parameters;
    const Scope scope(parameters, 1);
    const ConvNorm layer(scope / "conv", scope / "bn",
                         {.in = 4, .out = 8, .kernel = 3, .groups = groups},
                         {.kind = Norm::bn, .epsilon = 1e-3, .momentum = 0.03});
    const auto of = [&](const char* name) { return parameters.find(name)->value; };
    const auto x = at::randn({2, 4, 6, 5}).set_requires_grad(true);
    const auto mean = at::zeros({8}), var = at::ones({8});
    const auto apart = [&](bool training) {
      const auto y = at::conv2d(x, of("conv.weight"), {}, 1, 1, 1, groups);
      return at::silu(at::batch_norm(y, of("bn.weight"), of("bn.bias"), mean, var, training, 0.03,
                                     1e-3, false));
    };
    const auto gradient = at::randn({2, 8, 6, 5});
    const auto gradients = [&](const at::Tensor& y) {
      y.backward(gradient);
      std::vector<at::Tensor> all;
      for (const auto& leaf : {x, of("conv.weight"), of("bn.weight"), of("bn.bias")}) {
        all.push_back(leaf.grad().clone());
        leaf.mutable_grad().reset();
      }
      return all;
    };
    const auto expected = apart(true),
               actual = layer(x, {.training = true}, {.activation = Activation::silu});
    EXPECT_TRUE(tensors_close(actual, expected, 1e-5));
    EXPECT_TRUE(tensors_close(of("bn.running_mean"), mean, 1e-5));
    EXPECT_TRUE(tensors_close(of("bn.running_var"), var, 1e-5));
    const auto wanted = gradients(expected), got = gradients(actual);
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_TRUE(tensors_close(got[i], wanted[i], 1e-4)) << i;
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(tensors_close(layer(x, {}, {.activation = Activation::silu}), apart(false), 1e-5));
  }
}

}  // namespace
}  // namespace millrace::testing
