#include "millrace/trainer/optimizer/optimizer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "millrace/base/errors.h"
#include "millrace/trainer/optimizer/parameter_groups.h"
#include "tests/support/optimizer_step.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct OneParameter {
  Parameters parameters;
  at::Tensor value;

  explicit OneParameter(ParameterKind kind = ParameterKind::weight)
      : value(parameters.add("p", at::tensor({1.0, -2.0}), kind)) {}
};

at::Tensor pair(double a, double b) { return at::tensor({a, b}); }

void give(at::Tensor& value, double a, double b) { value.mutable_grad() = pair(a, b); }

/// Returns a parameter's value after two steps; its value and gradients have the memory format
/// `format`.
at::Tensor stepped(OptimizerType type, at::MemoryFormat format) {
  const auto counted = [&](double scale) {
    return (at::arange(2 * 3 * 2 * 2, at::kFloat).view({2, 3, 2, 2}) * scale).contiguous(format);
  };
  Parameters parameters;
  auto value = parameters.add("p", counted(0.1), ParameterKind::weight);
  const auto optimizer = make_optimizer(parameters, {.type = type, .weight_decay = 0.1});
  for (const double scale : {0.01, -0.02}) {
    value.mutable_grad() = counted(scale);
    take_step(*optimizer, 0.1);
  }
  return value.detach().contiguous();
}

TEST(Optimizer, IsIndependentOfMemoryLayout) {
  for (const auto type : {OptimizerType::sgd, OptimizerType::adamw})
    EXPECT_TRUE(at::equal(stepped(type, at::MemoryFormat::Contiguous),
                          stepped(type, at::MemoryFormat::ChannelsLast)))
        << value_name(type);
}

// What torch.optim.SGD computes, calculated by hand.
TEST(Sgd, MatchesTorch) {
  const struct {
    const char* name;
    OptimizerOptions options;
    double lr;
    at::Tensor gradient;
    std::vector<at::Tensor> after;  // after each step
  } cases[] = {
      // d = .6, .3, m = d in the first step; d = .594, .297, m = 1.134, .567 in the second.
      {"momentum",
       {.momentum = 0.9, .weight_decay = 0.1},
       0.1,
       pair(0.5, 0.5),
       {pair(0.94, -2.03), pair(0.8266, -2.0867)}},
      // m = 1; v -= lr (1 + .9)
      {"nesterov",
       {.momentum = 0.9, .nesterov = true, .weight_decay = 0},
       0.1,
       pair(1, 0),
       {pair(0.81, -2)}},
      {"no momentum", {.momentum = 0, .weight_decay = 0}, 0.5, pair(1, 2), {pair(0.5, -3)}},
      {"clip_norm",
       {.momentum = 0, .weight_decay = 0, .clip_norm = 1},
       1,
       pair(3, 4),
       {pair(1 - 0.6, -2 - 0.8)}},
      // clip_norm halves the gradient to 1.5, -2.
      {"clip_value",
       {.momentum = 0, .weight_decay = 0, .clip_norm = 2.5, .clip_value = 1.75},
       1,
       pair(3, -4),
       {pair(1 - 1.5, -2 + 1.75)}}};
  for (const auto& [name, options, lr, gradient, after] : cases) {
    OneParameter p;
    const auto sgd = make_optimizer(p.parameters, options);
    for (const auto& expected : after) {
      p.value.mutable_grad() = gradient.clone();
      EXPECT_DOUBLE_EQ(take_step(*sgd, lr).gradient_norm, gradient.norm().item<double>()) << name;
      EXPECT_TRUE(tensors_close(p.value.detach(), expected, 1e-12)) << name;
      EXPECT_FALSE(p.value.grad().defined()) << name;
    }
  }
}

TEST(Sgd, AppliesChangedOptions) {
  OneParameter p;
  OptimizerOptions options{.momentum = 0, .weight_decay = 0};
  const auto sgd = make_optimizer(p.parameters, options);
  give(p.value, 1, 0);
  take_step(*sgd, 0.1);  // v = .9, -2
  options.momentum = 0.5;
  options.weight_decay = 0.1;
  sgd->set_options(options);
  give(p.value, 0, 0);
  take_step(*sgd, 0.1);  // m = d = .09, -.2
  EXPECT_TRUE(tensors_close(p.value.detach(), pair(0.891, -1.98), 1e-12));
  options = {.momentum = 0, .weight_decay = 0, .clip_norm = 1};
  sgd->set_options(options);
  give(p.value, 3, 4);
  take_step(*sgd, 1);
  EXPECT_TRUE(tensors_close(p.value.detach(), pair(0.291, -2.78), 1e-12));
}

TEST(Sgd, DistinguishesParameterKinds) {
  const OptimizerOptions options{.momentum = 0,
                                 .weight_decay = 0.5,
                                 .weight_decay_bias = 0.25,
                                 .weight_decay_norm = 0,
                                 .bias_lr_factor = 2};
  const auto after_one_step = [&](ParameterKind kind) {
    OneParameter p(kind);
    const auto sgd = make_optimizer(p.parameters, options);
    give(p.value, 0, 0);
    take_step(*sgd, 0.1);
    return p.value.detach();
  };
  EXPECT_TRUE(tensors_close(after_one_step(ParameterKind::weight), pair(0.95, -1.9), 1e-12));
  EXPECT_TRUE(tensors_close(after_one_step(ParameterKind::bias), pair(0.95, -1.9), 1e-12));
  EXPECT_TRUE(tensors_close(after_one_step(ParameterKind::norm), pair(1, -2), 1e-12));
}

TEST(ParameterGroups, UseBiasRateFactorForNormBiases) {
  const auto rate_of = [](const std::string& name, ParameterKind kind) {
    Parameters parameters;
    parameters.add(name, pair(1, 2), kind);
    return group_parameters(parameters, {.bias_lr_factor = 2}).front().lr_factor;
  };
  EXPECT_EQ(rate_of("conv.bias", ParameterKind::bias), 2);
  EXPECT_EQ(rate_of("bn1.bias", ParameterKind::norm), 2);
  EXPECT_EQ(rate_of("bn1.weight", ParameterKind::norm), 1);
}

// |v| = sqrt(5), |g| = 5; equation 6 of You et al. 2017.
TEST(Sgd, AppliesTrustRatioPerWeight) {
  const double norm = std::sqrt(5.0), decay = 0.1, most = 0.02 * norm;
  const double ratio = most / (5 + decay * norm);
  const auto after_one_step = [&](Trust trust, double lr, ParameterKind kind) {
    OneParameter p(kind);
    const auto sgd = make_optimizer(p.parameters, {.momentum = 0.9,
                                                   .weight_decay = decay,
                                                   .weight_decay_norm = decay,
                                                   .trust = trust,
                                                   .trust_coefficient = 0.02});
    give(p.value, 3, 4);
    take_step(*sgd, lr);
    return p.value.detach();
  };
  const auto moved = [&](double rate) { return pair(1 - rate * 3.1, -2 - rate * 3.8); };
  const auto weight = ParameterKind::weight;
  EXPECT_TRUE(tensors_close(after_one_step(Trust::lars, 2, weight), moved(2 * ratio), 1e-12));
  EXPECT_TRUE(tensors_close(after_one_step(Trust::larc, 2, weight), moved(ratio), 1e-12));
  EXPECT_TRUE(tensors_close(after_one_step(Trust::larc, 0.001, weight), moved(0.001), 1e-12));
  for (const auto kind : {ParameterKind::bias, ParameterKind::norm})
    EXPECT_TRUE(tensors_close(after_one_step(Trust::lars, 0.1, kind), moved(0.1), 1e-12));
}

TEST(Sgd, TrustIgnoresZeroWeights) {
  Parameters parameters;
  const auto value = parameters.add("p", at::zeros({2}, at::kDouble), ParameterKind::weight);
  const auto sgd = make_optimizer(parameters, {.momentum = 0, .trust = Trust::lars});
  value.mutable_grad() = pair(1, 2);
  take_step(*sgd, 0.1);
  EXPECT_TRUE(tensors_close(value.detach(), pair(-0.1, -0.2), 1e-12));
}

TEST(Sgd, KeepsParametersIfGradientIsNotFinite) {
  OneParameter p;
  const auto sgd = make_optimizer(p.parameters, {});
  give(p.value, 1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(take_step(*sgd, 0.1).not_finite, "p");
  EXPECT_TRUE(tensors_close(p.value.detach(), pair(1, -2), 0));
  EXPECT_TRUE(tensors_close(sgd->state()[0].second, pair(0, 0), 0));
}

TEST(Sgd, IgnoresFrozenParametersAndMissingGradients) {
  OneParameter p;
  p.parameters.add("q", at::tensor({1.0}), ParameterKind::weight);
  p.parameters.freeze("q");
  const auto sgd = make_optimizer(p.parameters, {});
  EXPECT_EQ(sgd->state().size(), 1U);
  take_step(*sgd, 0.1);
  EXPECT_TRUE(tensors_close(p.value.detach(), pair(1, -2), 0));
}

TEST(Sgd, AcceptsGradientsOfDifferentLayout) {
  Parameters parameters;
  auto value = parameters.add("p", at::zeros({2, 3}, at::kDouble), ParameterKind::weight);
  const auto sgd = make_optimizer(parameters, {.momentum = 0, .weight_decay = 0});
  value.mutable_grad() = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).view({3, 2}).t();
  take_step(*sgd, -1);
  EXPECT_TRUE(
      tensors_close(value.detach(), at::tensor({1.0, 3.0, 5.0, 2.0, 4.0, 6.0}).view({2, 3}), 0));
}

TEST(Sgd, RejectsMomentumOfDifferentModel) {
  OneParameter p;
  const auto sgd = make_optimizer(p.parameters, {});
  EXPECT_THROW(sgd->load({}), Error);
  EXPECT_THROW(sgd->load({{"p", at::tensor({1.0})}}), Error);
  EXPECT_THROW(sgd->load({{"p", pair(1, 1)}, {"other", pair(1, 1)}}), Error);
  sgd->load({{"p", pair(3, 4)}});
  EXPECT_TRUE(tensors_close(sgd->state()[0].second, pair(3, 4), 0));
}

TEST(Optimizer, ResetsStateOfNewlyTrainedParameters) {
  for (const auto type : {OptimizerType::sgd, OptimizerType::adamw}) {
    Parameters parameters;
    auto a = parameters.add("a", pair(1, 2), ParameterKind::weight);
    auto b = parameters.add("b", pair(3, 4), ParameterKind::weight);
    auto c = parameters.add("c", pair(5, 6), ParameterKind::weight);
    const auto trained = [&](bool with_a, bool with_c) {
      a.set_requires_grad(with_a), c.set_requires_grad(with_c);
      return make_optimizer(parameters, {.type = type});
    };
    const auto first = trained(true, false);
    give(a, 1, 1), give(b, 1, 2);
    take_step(*first, 0.1);
    const auto saved = first->state();
    const auto second = trained(false, true);
    for (const auto& [name, tensor] : second->state()) tensor.fill_(7);
    second->load(saved);
    const std::map<std::string, at::Tensor> before(saved.begin(), saved.end());
    for (const auto& [name, tensor] : second->state()) {
      EXPECT_FALSE(name.starts_with("a"));
      EXPECT_TRUE(
          tensors_equal(tensor, name.starts_with("b") ? before.at(name) : at::zeros_like(tensor)))
          << value_name(type) << ", " << name;
    }
    b.set_requires_grad(false);  // now different parameters are trained
    trained(false, true)->load(saved);
    b.set_requires_grad(true);
  }
}

// What torch.optim.AdamW computes, calculated by hand. The first step has size lr for any gradient.
TEST(AdamW, MatchesTorch) {
  OneParameter p;
  const auto adamw = make_optimizer(
      p.parameters,
      {.type = OptimizerType::adamw, .momentum = 0.9, .beta2 = 0.99, .weight_decay = 0.1});
  give(p.value, 0.5, -4);
  take_step(*adamw, 0.1);
  EXPECT_TRUE(tensors_close(p.value.detach(), pair(1 * 0.99 - 0.1, -2 * 0.99 + 0.1), 1e-7));
  give(p.value, 0, 0);
  take_step(*adamw,
            0.1);  // m = .045, s = .002475; their bias corrections are 1 - .81 and 1 - .9801
  const double second = 0.1 * (0.045 / 0.19) / std::sqrt(0.002475 / 0.0199);
  EXPECT_NEAR(p.value[0].item<double>(), 0.89 * 0.99 - second, 1e-7);
}

TEST(AdamW, CountsStepsPerParameter) {
  OneParameter p;
  const auto other = p.parameters.add("q", at::tensor({1.0}), ParameterKind::weight);
  const auto adamw =
      make_optimizer(p.parameters, {.type = OptimizerType::adamw, .weight_decay = 0});
  give(p.value, 1, 1);
  take_step(*adamw, 0.1);
  give(p.value, 1, 1);
  other.mutable_grad() = at::tensor({2.0});
  take_step(*adamw, 0.1);
  EXPECT_NEAR(other.item<double>(), 0.9, 1e-7);  // the first step of this parameter
  NamedTensors state = adamw->state();
  const std::map<std::string, at::Tensor> named(state.begin(), state.end());
  EXPECT_EQ(named.at("p.steps").item<double>(), 2);
  EXPECT_EQ(named.at("q.steps").item<double>(), 1);
}

TEST(AdamW, ResumesFromState) {
  const OptimizerOptions options{.type = OptimizerType::adamw};
  OneParameter whole, half;
  const auto first = make_optimizer(whole.parameters, options);
  for (int step = 0; step < 3; ++step) {
    give(whole.value, step, 1);
    take_step(*first, 0.1);
  }
  half.value.detach().copy_(whole.value.detach());
  const auto second = make_optimizer(half.parameters, options);
  second->load(first->state());
  for (auto* side : {&whole, &half}) give(side->value, 2, -1);
  take_step(*first, 0.1);
  take_step(*second, 0.1);
  EXPECT_TRUE(tensors_equal(whole.value.detach(), half.value.detach()));
}

TEST(Optimizer, RejectsStateOfDifferentType) {
  OneParameter p;
  const auto sgd = make_optimizer(p.parameters, {}),
             adamw = make_optimizer(p.parameters, {.type = OptimizerType::adamw});
  for (const auto& [into, from] : {std::pair(&sgd, &adamw), std::pair(&adamw, &sgd)}) {
    const auto why = message_of([&] { (*into)->load((*from)->state()); });
    EXPECT_THAT(why, HasSubstr("optimizer.type"));
    EXPECT_THAT(why, HasSubstr("model.weights"));
  }
}

TEST(Optimizer, AcceptsEmptyAndMissingGradients) {
  Parameters parameters;
  const auto empty = parameters.add("empty", at::zeros({0}), ParameterKind::weight);
  for (const auto type : {OptimizerType::sgd, OptimizerType::adamw}) {
    const auto optimizer = make_optimizer(parameters, {.type = type});
    EXPECT_EQ(take_step(*optimizer, 0.1).gradient_norm, 0);
    empty.mutable_grad() = at::zeros({0});
    EXPECT_EQ(take_step(*optimizer, 0.1).not_finite, "");
  }
}

TEST(Optimizer, KeepsGroupsIfGradientIsNotFinite) {
  for (const auto type : {OptimizerType::sgd, OptimizerType::adamw}) {
    OneParameter p;
    const auto other = p.parameters.add("q", at::tensor({1.0}), ParameterKind::bias);
    const auto optimizer =
        make_optimizer(p.parameters, {.type = type, .groups = {{.match = "q", .lr_factor = 2}}});
    give(p.value, 1, 1);
    other.mutable_grad() = at::tensor({std::numeric_limits<double>::quiet_NaN()});
    EXPECT_EQ(take_step(*optimizer, 0.1).not_finite, "q");
    EXPECT_TRUE(tensors_close(p.value.detach(), pair(1, -2), 0));
    EXPECT_FALSE(p.value.grad().defined());
    for (const auto& [name, kept] : optimizer->state())
      EXPECT_EQ(kept.abs().sum().item<double>(), 0) << name;
  }
}

struct ThreeParameters {
  Parameters parameters;
  at::Tensor backbone = add("backbone.conv.weight", ParameterKind::weight),
             norm = add("backbone.bn.weight", ParameterKind::norm),
             head = add("head.fc.weight", ParameterKind::weight);

  at::Tensor add(const std::string& name, ParameterKind kind) {
    return parameters.add(name, at::tensor({1.0}), kind);
  }
  void step(Optimizer& optimizer) {
    for (auto* value : {&backbone, &norm, &head})
      if (value->requires_grad()) value->mutable_grad() = at::tensor({0.0});
    take_step(optimizer, 0.1);
  }
};

TEST(ParameterGroups, UseFirstMatchingRule) {
  ThreeParameters p;
  OptimizerOptions options{.momentum = 0,
                           .weight_decay = 0.5,
                           .groups = {{.match = "*.bn.*", .weight_decay = 0.2},
                                      {.match = "backbone.*", .lr_factor = 0.1}}};
  const auto optimizer = make_optimizer(p.parameters, options);
  p.step(*optimizer);
  EXPECT_NEAR(p.norm.item<double>(), 1 - 0.1 * 0.2, 1e-12);
  EXPECT_NEAR(p.backbone.item<double>(), 1 - 0.1 * 0.1 * 0.5, 1e-12);
  EXPECT_NEAR(p.head.item<double>(), 1 - 0.1 * 0.5, 1e-12);

  // Groups with their own weight decay keep it; the other groups use the changed value.
  const auto norm = p.norm.item<double>(), head = p.head.item<double>();
  options.weight_decay = 0;
  optimizer->set_options(options);
  p.step(*optimizer);
  EXPECT_NEAR(p.norm.item<double>(), norm * (1 - 0.1 * 0.2), 1e-12);
  EXPECT_EQ(p.head.item<double>(), head);
}

TEST(ParameterGroups, DisableGradientsIfFrozen) {
  ThreeParameters p;
  const auto optimizer =
      make_optimizer(p.parameters, {.groups = {{.match = "backbone.*", .frozen = true}}});
  EXPECT_FALSE(p.backbone.requires_grad());
  EXPECT_FALSE(p.norm.requires_grad());
  EXPECT_TRUE(p.head.requires_grad());
  EXPECT_EQ(optimizer->state().size(), 1U);
  EXPECT_FALSE((p.backbone * 2).requires_grad());
}

std::string complaint_of_rules(const std::vector<ParameterRule>& rules) {
  ThreeParameters p;
  return message_of<ConfigError>([&] { group_parameters(p.parameters, {.groups = rules}); });
}

TEST(ParameterGroups, RejectRuleWithoutMatch) {
  EXPECT_THAT(complaint_of_rules({{.match = "bakbone.*"}}),
              HasSubstr("did you mean 'backbone.*'?"));
  EXPECT_THAT(complaint_of_rules({{.match = "rpn"}}), HasSubstr("backbone.*, head.*"));
  EXPECT_THAT(complaint_of_rules({{.match = "*"}, {.match = "head.*"}}),
              AllOf(HasSubstr("'head.*'"), HasSubstr("earlier rules")));
}

TEST(OptimizerOptions, ScaleRateWithImagesPerStep) {
  const OptimizerOptions options{.lr = 0.02, .lr_batch = 16};
  EXPECT_DOUBLE_EQ(options.scaled_lr(16), 0.02);
  EXPECT_DOUBLE_EQ(options.scaled_lr(4), 0.005);
}

}  // namespace
}  // namespace millrace::testing
