#include "trainer/optimizer.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "base/errors.h"
#include "tests/tensors.h"

namespace millrace {
namespace {

using testing::close;

struct OneParameter {
  Parameters parameters;
  at::Tensor value;

  explicit OneParameter(ParameterKind kind = ParameterKind::weight)
      : value(parameters.add("p", at::tensor({1.0, -2.0}), kind)) {}
};

at::Tensor pair(double a, double b) { return at::tensor({a, b}); }

void give(at::Tensor& value, double a, double b) { value.mutable_grad() = pair(a, b); }

// The figures are torch.optim.SGD's, worked by hand.
TEST(Sgd, FollowsTorchWithMomentumAndDecay) {
  OneParameter p;
  Sgd sgd(p.parameters, {.momentum = 0.9, .weight_decay = 0.1});
  give(p.value, 0.5, 0.5);
  sgd.step(0.1);  // d = .6, .3; m = d
  EXPECT_TRUE(close(p.value.detach(), pair(0.94, -2.03), 1e-12));
  give(p.value, 0.5, 0.5);
  sgd.step(0.1);  // d = .594, .297; m = 1.134, .567
  EXPECT_TRUE(close(p.value.detach(), pair(0.8266, -2.0867), 1e-12));
  EXPECT_FALSE(p.value.grad().defined());
}

TEST(Sgd, LooksAheadWithNesterov) {
  OneParameter p;
  Sgd sgd(p.parameters, {.momentum = 0.9, .nesterov = true, .weight_decay = 0});
  give(p.value, 1, 0);
  sgd.step(0.1);  // m = 1; v -= lr (1 + .9)
  EXPECT_TRUE(close(p.value.detach(), pair(0.81, -2), 1e-12));
}

TEST(Sgd, WorksWithoutMomentum) {
  OneParameter p;
  Sgd sgd(p.parameters, {.momentum = 0, .weight_decay = 0});
  give(p.value, 1, 2);
  sgd.step(0.5);
  EXPECT_TRUE(close(p.value.detach(), pair(0.5, -3), 1e-12));
  EXPECT_TRUE(sgd.state().empty());
}

TEST(Sgd, TreatsParametersByKind) {
  const OptimizerOptions options{.momentum = 0,
                                 .weight_decay = 0.5,
                                 .weight_decay_bias = 0.25,
                                 .weight_decay_norm = 0,
                                 .bias_lr_factor = 2};
  const auto after_one_step = [&](ParameterKind kind) {
    OneParameter p(kind);
    Sgd sgd(p.parameters, options);
    give(p.value, 0, 0);
    sgd.step(0.1);
    return p.value.detach();
  };
  EXPECT_TRUE(close(after_one_step(ParameterKind::weight), pair(0.95, -1.9), 1e-12));
  EXPECT_TRUE(close(after_one_step(ParameterKind::bias), pair(0.95, -1.9), 1e-12));
  EXPECT_TRUE(close(after_one_step(ParameterKind::norm), pair(1, -2), 1e-12));
}

TEST(Sgd, ClipsTheNormOfAllGradientsTogether) {
  OneParameter p;
  Sgd sgd(p.parameters, {.momentum = 0, .weight_decay = 0, .clip_norm = 1});
  give(p.value, 3, 4);
  EXPECT_DOUBLE_EQ(sgd.step(1).gradient_norm, 5);
  EXPECT_TRUE(close(p.value.detach(), pair(1 - 0.6, -2 - 0.8), 1e-12));
}

TEST(Sgd, ChangesNothingWhereAGradientIsNotFinite) {
  OneParameter p;
  Sgd sgd(p.parameters, {});
  give(p.value, 1, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(sgd.step(0.1).not_finite, "p");
  EXPECT_TRUE(close(p.value.detach(), pair(1, -2), 0));
  EXPECT_TRUE(close(sgd.state()[0].second, pair(0, 0), 0));
}

TEST(Sgd, LeavesParametersWithoutGradientAndFrozenOnesAlone) {
  OneParameter p;
  p.parameters.add("q", at::tensor({1.0}), ParameterKind::weight);
  p.parameters.freeze("q");
  Sgd sgd(p.parameters, {});
  EXPECT_EQ(sgd.state().size(), 1U);
  sgd.step(0.1);
  EXPECT_TRUE(close(p.value.detach(), pair(1, -2), 0));
}

TEST(Sgd, AlignsGradientsOfAnotherLayout) {
  Parameters parameters;
  auto value = parameters.add("p", at::zeros({2, 3}, at::kDouble), ParameterKind::weight);
  Sgd sgd(parameters, {.momentum = 0, .weight_decay = 0});
  value.mutable_grad() = at::tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}).view({3, 2}).t();
  sgd.step(-1);
  EXPECT_TRUE(close(value.detach(), at::tensor({1.0, 3.0, 5.0, 2.0, 4.0, 6.0}).view({2, 3}), 0));
}

TEST(Sgd, RefusesMomentumOfAnotherModel) {
  OneParameter p;
  Sgd sgd(p.parameters, {});
  EXPECT_THROW(sgd.load({}), Error);
  EXPECT_THROW(sgd.load({{"p", at::tensor({1.0})}}), Error);
  EXPECT_THROW(sgd.load({{"p", pair(1, 1)}, {"other", pair(1, 1)}}), Error);
  sgd.load({{"p", pair(3, 4)}});
  EXPECT_TRUE(close(sgd.state()[0].second, pair(3, 4), 0));
}

TEST(OptimizerOptions, ScaleTheRateWithTheImagesOfAStep) {
  const OptimizerOptions options{.lr = 0.02, .lr_batch = 16};
  EXPECT_DOUBLE_EQ(options.scaled_lr(16), 0.02);
  EXPECT_DOUBLE_EQ(options.scaled_lr(4), 0.005);
}

}  // namespace
}  // namespace millrace
