// fp16 training finds its loss scale automatically: steps that overflow are skipped and not counted
// as bad.
#include "millrace/models/detector/precision.h"

#include <ATen/Context.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "millrace/base/errors.h"
#include "millrace/trainer/checkpoint/position.h"
#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

/// loss = slope * w, computed in fp16. Its gradient, the loss scale times the slope, overflows
/// above 65504.
class HalfDetector final : public Detector {
 public:
  explicit HalfDetector(double slope) : slope_(slope) {
    w_ = parameters_.add("w", at::full({1}, 1.0), ParameterKind::bias);
  }
  LossSums compute_losses(const Batch&, const StepInfo&) override {
    return {{"fit", (w_.to(at::kHalf) * slope_).to(at::kFloat).sum(), {"images", 1}}};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

 private:
  double slope_;
  Parameters parameters_;
  at::Tensor w_;
};

TEST(Precision, NamesMatchTypes) {
  EXPECT_EQ(precision_type(FloatType::fp32), at::kFloat);
  EXPECT_EQ(precision_type(FloatType::tf32), at::kFloat);
  EXPECT_EQ(precision_type(FloatType::bf16), at::kBFloat16);
  EXPECT_EQ(precision_type(FloatType::fp16), at::kHalf);
}

// libtorch's getters throw if its old and new TF32 settings disagree.
TEST(Precision, SetsTf32ConsistentlyInLibtorch) {
  const auto& libtorch = at::globalContext();
  for (const bool tf32 : {true, false}) {
    choose_products(tf32);
    EXPECT_EQ(libtorch.allowTF32CuDNN(at::Float32Op::CONV), tf32);
    EXPECT_EQ(libtorch.allowTF32CuDNN(), tf32);
    EXPECT_EQ(libtorch.allowTF32CuBLAS(), tf32);
  }
}

TEST(Precision, RejectsTf32OnCpu) {
  const auto check = [](const std::string& text) {
    return message_of<ConfigError>([&] { read_options<TrainOptions>(parse_config(text, "test")); });
  };
  EXPECT_THAT(check("precision = 'tf32'"), ::testing::HasSubstr("device = \"cuda\""));
  EXPECT_EQ(check("precision = 'tf32'\ndevice = 'cuda'"), "");
}

TEST(Precision, IsRestoredByGuard) {
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

TEST(LossScale, HalvesAtOnceAndDoublesLater) {
  LossScale scale;
  EXPECT_TRUE(scale.shrink());
  EXPECT_EQ(scale.factor, LossScale::kInitial / 2);
  for (std::int64_t i = 1; i < LossScale::kGrowthInterval; ++i) scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kInitial / 2);
  scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kInitial);
}

TEST(LossScale, StaysWithinBounds) {
  LossScale scale;
  while (scale.shrink()) {
  }
  EXPECT_EQ(scale.factor, LossScale::kMin);
  for (std::int64_t i = 0; i < 40 * LossScale::kGrowthInterval; ++i) scale.grow();
  EXPECT_EQ(scale.factor, LossScale::kMax);
}

/// A training run in fp16. With a slope of 6, the loss scales 65536, 32768 and 16384 overflow and
/// 8192 does not.
struct HalfTraining {
  explicit HalfTraining(double slope = 6) : model(slope) {
    plan.train.precision = FloatType::fp16;
    plan.optimizer.clip_norm = 0;
  }
  std::string failure() {
    return message_of([&] { Trainer(plan, {}).run(); });
  }
  double weight() const { return model.parameters().find("w")->value.item<double>(); }

  Scratch scratch;
  HalfDetector model;
  TrainPlan plan = fake_plan(model, scratch / "run");
};

TEST(LossScale, SkipsOverflowsWithoutCountingBadSteps) {
  HalfTraining half;
  std::vector<double> weights, factors;
  std::vector<std::int64_t> overflows;
  train(half.plan, [&](LambdaCallback& c) {
    c.on_after_step = [&](const TrainState& s) {
      weights.push_back(half.weight());
      factors.push_back(s.at.loss_scale.factor);
      EXPECT_EQ(s.at.bad_steps, 0);
      overflows.push_back(s.at.overflow_steps);
    };
  });
  ASSERT_GE(factors.size(), 5U);
  EXPECT_EQ(std::vector(factors.begin(), factors.begin() + 4),
            (std::vector<double>{32768, 16384, 8192, 8192}));
  EXPECT_EQ(std::vector(overflows.begin(), overflows.begin() + 4),
            (std::vector<std::int64_t>{1, 2, 3, 3}));
  EXPECT_EQ(weights[2], 1);
  EXPECT_LT(weights[3], 1);
}

TEST(LossScale, NeverChangesIfStatic) {
  const auto train = [](double loss_scale) {
    HalfTraining half;
    half.plan.train.loss_scale = loss_scale;
    const auto end = Trainer(half.plan, {}).run();
    EXPECT_EQ(end.at.bad_steps + end.at.overflow_steps, 0);
    // Unused, so still the initial value of the search.
    EXPECT_EQ(end.at.loss_scale.factor, LossScale::kInitial);
    return half.weight();
  };
  EXPECT_LT(train(1024), 1);
  EXPECT_NEAR(train(1024), train(64), 1e-6);
}

TEST(LossScale, CountsOverflowsThatItCannotFix) {
  HalfTraining static_scale, infinite(/*slope=*/1e30);
  static_scale.plan.train.loss_scale = 16384;
  infinite.plan.train.epochs = 20;
  const auto why = static_scale.failure();
  EXPECT_THAT(why, ::testing::HasSubstr("train.loss_scale = 16384"));
  EXPECT_THAT(why, ::testing::HasSubstr("10th"));
  EXPECT_THAT(infinite.failure(), ::testing::HasSubstr("10th"));
}

/// loss = w, computed as a product in the precision of the step.
class LinearDetector final : public Detector {
 public:
  LinearDetector() { w_ = parameters_.add("w", at::full({1, 1}, 1.0), ParameterKind::weight); }
  LossSums compute_losses(const Batch&, const StepInfo&) override {
    const auto y = at::linear(at::full({1, 1}, 1.0), w_);
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    return {{"fit", y.to(at::kFloat).sum(), {"images", 1}}};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

 private:
  Parameters parameters_;
  at::Tensor w_;
};

// bfloat16 has no value between 1 and 1 - 1 / 256.
TEST(Precision, KeepsUpdatesTooSmallForBf16) {
  const Scratch scratch;
  LinearDetector model;
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = FloatType::bf16;
  plan.optimizer = {.lr = 1e-4, .lr_batch = 2, .momentum = 0, .weight_decay = 0};
  plan.schedule = {.type = ScheduleType::constant, .warmup = "0 steps"};
  Trainer(plan, {}).run();  // 15 steps
  const auto& value = model.parameters().find("w")->value;
  EXPECT_EQ(value.scalar_type(), at::kFloat);
  EXPECT_NEAR(value.item<double>(), 1 - 15e-4, 1e-6);
}

TEST(LossScale, ResumesExactly) {
  const Scratch scratch;
  const auto train = [&](const std::string& name, std::int64_t steps) {
    HalfDetector model(/*slope=*/6);
    auto plan = fake_plan(model, scratch / name);
    plan.train.precision = FloatType::fp16;
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
}  // namespace millrace::testing
