// fp16 looks for the factor of its loss by itself: steps that overflow are left out and not counted
// as bad.
#include "millrace/trainer/detector/precision.h"

#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/trainer/detector/position.h"
#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"

namespace millrace {
namespace {

using testing::fake_plan;
using testing::LambdaCallback;
using testing::Scratch;
using testing::train_saving;

/// loss = slope * w, worked out in fp16: its gradient, the factor times the slope, overflows above
/// 65504.
class HalfDetector final : public Detector {
 public:
  explicit HalfDetector(double slope) : slope_(slope) {
    w_ = parameters_.add("w", at::full({1}, 1.0), ParameterKind::bias);
  }
  Losses losses(const Batch&, const StepInfo&) override {
    return {{"fit", (w_.to(at::kHalf) * slope_).to(at::kFloat).sum()}};
  }
  std::vector<std::vector<DetectedObject>> detect(const Batch&) override { return {}; }
  const Parameters& parameters() const override { return parameters_; }

 private:
  double slope_;
  Parameters parameters_;
  at::Tensor w_;
};

TEST(Precision, NamesAreTypes) {
  EXPECT_EQ(precision_type("fp32"), at::kFloat);
  EXPECT_EQ(precision_type("bf16"), at::kBFloat16);
  EXPECT_EQ(precision_type("fp16"), at::kHalf);
  EXPECT_THROW(precision_type("fp8"), std::invalid_argument);
}

TEST(Precision, HoldsOnlyWhileItsGuardLives) {
  const auto x = at::full({1}, 1.0);
  {
    const ComputeIn outer(at::kBFloat16, at::kCPU);
    EXPECT_EQ(compute_type(x), at::kBFloat16);
    {
      const ComputeIn inner(at::kFloat, at::kCPU);
      EXPECT_EQ(compute_type(x), at::kFloat);
    }
    EXPECT_EQ(compute_type(x), at::kBFloat16);
  }
  EXPECT_EQ(compute_type(x), at::kFloat);
}

TEST(LossScale, HalvesAtOnceAndDoublesWithPatience) {
  LossScale scale;
  EXPECT_TRUE(scale.shrink());
  EXPECT_EQ(scale.factor, LossScale::kFirst / 2);
  for (std::int64_t i = 1; i < LossScale::kPatience; ++i) scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kFirst / 2);
  scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kFirst);
}

TEST(LossScale, StaysWithinItsBounds) {
  LossScale scale;
  while (scale.shrink()) {
  }
  EXPECT_EQ(scale.factor, LossScale::kLeast);
  for (std::int64_t i = 0; i < 40 * LossScale::kPatience; ++i) scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kMost);
}

TEST(LossScale, OverflowsLeaveStepsOutAndAreNotBadSteps) {
  const Scratch scratch;
  // 65536, 32768 and 16384 times it are too much, 8192 times is not
  HalfDetector model(/*slope=*/6);
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = "fp16";
  plan.optimizer.clip_norm = 0;
  std::vector<double> weights, factors;
  std::vector<std::int64_t> overflows;
  auto watch = std::make_unique<LambdaCallback>();
  watch->on_after_step = [&](TrainState& s) {
    weights.push_back(model.parameters().find("w")->value.item<double>());
    factors.push_back(s.at.loss_scale.factor);
    EXPECT_EQ(s.at.bad_steps, 0);
    overflows.push_back(s.at.overflow_steps);
  };
  CallbackList callbacks;
  callbacks.add("watch", std::move(watch));
  Trainer(plan, std::move(callbacks)).run();
  ASSERT_GE(factors.size(), 5U);
  EXPECT_EQ(std::vector(factors.begin(), factors.begin() + 4),
            (std::vector<double>{32768, 16384, 8192, 8192}));
  EXPECT_EQ(std::vector(overflows.begin(), overflows.begin() + 4),
            (std::vector<std::int64_t>{1, 2, 3, 3}));
  EXPECT_EQ(weights[2], 1);
  EXPECT_LT(weights[3], 1);
}

TEST(LossScale, StaticStaysAsItIs) {
  const Scratch scratch;
  const auto train = [&](double loss_scale) {
    HalfDetector model(/*slope=*/6);
    auto plan = fake_plan(model, scratch / std::to_string(loss_scale));
    plan.train.precision = "fp16";
    plan.train.loss_scale = loss_scale;
    plan.optimizer.clip_norm = 0;
    const auto end = Trainer(plan, {}).run();
    EXPECT_EQ(end.at.bad_steps + end.at.overflow_steps, 0);
    EXPECT_EQ(end.at.loss_scale.factor, LossScale::kFirst);  // that of a search, unused
    return model.parameters().find("w")->value.item<double>();
  };
  EXPECT_LT(train(1024), 1);
  EXPECT_NEAR(train(1024), train(64), 1e-6);
}

TEST(LossScale, OverflowsOfAStaticOneAreBadStepsThatNameIt) {
  const Scratch scratch;
  HalfDetector model(/*slope=*/6);
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = "fp16";
  plan.train.loss_scale = 16384;
  try {
    Trainer(plan, {}).run();
    ADD_FAILURE() << "it trained";
  } catch (const Error& problem) {
    EXPECT_THAT(problem.what(), ::testing::HasSubstr("train.loss_scale = 16384"));
    EXPECT_THAT(problem.what(), ::testing::HasSubstr("10th such step in a row"));
  }
}

/// loss = slope * w, its product worked out in the type of the step.
class LinearDetector final : public Detector {
 public:
  LinearDetector() { w_ = parameters_.add("w", at::full({1, 1}, 1.0), ParameterKind::weight); }
  Losses losses(const Batch&, const StepInfo&) override {
    const auto y = at::linear(at::full({1, 1}, 1.0), w_);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    return {{"fit", y.to(at::kFloat).sum()}};
  }
  std::vector<std::vector<DetectedObject>> detect(const Batch&) override { return {}; }
  const Parameters& parameters() const override { return parameters_; }

 private:
  Parameters parameters_;
  at::Tensor w_;
};

// bfloat16 has no number between 1 and 1 - 1 / 256.
TEST(Precision, UpdatesTooSmallForBf16AreNotLost) {
  const Scratch scratch;
  LinearDetector model;
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = "bf16";
  plan.optimizer = {.lr = 1e-4, .lr_batch = 2, .momentum = 0, .weight_decay = 0};
  plan.schedule = {.type = "constant", .warmup = "0 steps"};
  Trainer(plan, {}).run();  // 15 steps
  const auto& value = model.parameters().find("w")->value;
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_NEAR(value.item<double>(), 1 - 15e-4, 1e-6);
}

TEST(LossScale, LossesThatOverflowThemselvesAreBadSteps) {
  const Scratch scratch;
  HalfDetector model(/*slope=*/1e30);
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = "fp16";
  plan.train.epochs = 20;
  try {
    Trainer(plan, {}).run();
    ADD_FAILURE() << "it trained";
  } catch (const Error& problem) {
    EXPECT_THAT(problem.what(), ::testing::HasSubstr("10th such step in a row"));
  }
}

TEST(LossScale, AResumedTrainingGoesOnAsIfItHadNotStopped) {
  const Scratch scratch;
  const auto train = [&](const std::string& name, std::int64_t steps) {
    HalfDetector model(/*slope=*/6);
    auto plan = fake_plan(model, scratch / name);
    plan.train.precision = "fp16";
    plan.train.max_steps = steps;
    const auto end = train_saving(plan);
    return std::tuple(model.parameters().find("w")->value.item<double>(), end.at.loss_scale.factor,
                      end.at.loss_scale.good_steps);
  };
  const auto whole = train("whole", 9);
  train("halves", 2);  // stopped during the search
  EXPECT_EQ(train("halves", 9), whole);
}

}  // namespace
}  // namespace millrace
