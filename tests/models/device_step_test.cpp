// Steps that are accepted or rejected on the device match the CPU's: parameters, optimizer state,
// rejections and their reasons.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <limits>

#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/running_statistics.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/other_device.h"
#include "tests/models/small_batch.h"
#include "tests/support/optimizer_step.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const at::Device kThere(kOtherDevice, 0);

/// Which value of a step is not finite.
enum class Trouble { none, loss, gradient };

/// A detector whose loss is 0.1 |w x - id|^2 + b. It has running statistics, a parameter without a
/// gradient and, on request, non-finite values.
class Plane final : public Detector {
 public:
  explicit Plane(at::Device device) : device_(device) {
    w_ = add("w", {1, -2, 0.5, 3}, ParameterKind::weight);
    b_ = add("b", {0.25}, ParameterKind::bias);
    idle_ = add("idle", {1}, ParameterKind::weight);
    seen_ = add("seen", {0, 0}, ParameterKind::buffer);
  }

  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    const auto id = static_cast<double>(batch.images[0].image_id);
    const auto x = at::tensor({id, 1.0, -id, 0.5}, at::kFloat).to(device_);
    auto error = ((w_ * x).sum() - id).square() * 0.1;
    if (trouble == Trouble::loss) error = error * std::numeric_limits<double>::infinity();
    // The value is 0 and its gradient is 0 times infinity.
    if (trouble == Trouble::gradient) error = error + (w_ * 0).sqrt().sum();
    if (at::GradMode::is_enabled()) seen_.add_(id);
    if (step.metrics) {
      step.metrics->add("on the device", error.detach(), at::full({}, 4.0).to(device_));
      step.metrics->add("on the host", id, 2);
      step.metrics->add("on the device again", at::full({}, 3.0).to(device_),
                        at::full({}, 4.0).to(device_));
    }
    return {{"fit", error, {"images", 1}}, {"bias", b_.sum(), {"images", 1}}};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

  Trouble trouble = Trouble::none;

 private:
  at::Tensor add(const char* name, std::initializer_list<double> values, ParameterKind kind) {
    return parameters_.add(name, at::tensor(values, at::kFloat).to(device_), kind);
  }

  at::Device device_;
  Parameters parameters_;
  at::Tensor w_, b_, idle_, seen_;
};

Batch image(std::int64_t id) {
  Batch batch;
  batch.images.push_back({.image_id = id});
  batch.objects.resize(1);
  return batch;
}

/// A training run on one device, with all state that it changes.
struct Training {
  Training(at::Device device, const OptimizerOptions& options, const TrainOptions& train = {})
      : model(device), step(model, train, options) {}

  StepEnd take(std::vector<std::int64_t> ids) {
    std::vector<Batch> batches;
    for (const auto id : ids) batches.push_back(image(id));
    Metrics metrics;
    return step(batches, {.step = taken++, .metrics = &metrics}, 0.1, scale);
  }

  NamedTensors all() {
    auto all = named_values(model);
    for (auto& named : step.optimizer().state()) all.push_back(std::move(named));
    for (auto& [name, value] : all) value = value.cpu().clone();
    return all;
  }

  Plane model;
  TrainingStep step;
  LossScale scale;
  std::int64_t taken = 0;
};

void expect_close(const NamedTensors& here, const NamedTensors& there, double most) {
  ASSERT_EQ(here.size(), there.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_LE((here[i].second - there[i].second).abs().max().item<double>(), most) << here[i].first;
}

void expect_close(const StepEnd& here, const StepEnd& there) {
  EXPECT_EQ(here.rejected, there.rejected);
  EXPECT_EQ(here.overflow, there.overflow);
  ASSERT_EQ(here.scalars.size(), there.scalars.size());
  for (std::size_t i = 0; i < here.scalars.size(); ++i) {
    EXPECT_EQ(here.scalars[i].name, there.scalars[i].name);
    if (std::isfinite(here.scalars[i].value)) {
      EXPECT_NEAR(here.scalars[i].value, there.scalars[i].value,
                  1e-5 * std::max(1.0, std::abs(here.scalars[i].value)))
          << here.scalars[i].name;
    }
  }
}

std::vector<OptimizerOptions> rules() {
  return {{},
          {.momentum = 0, .weight_decay = 0.1},
          {.nesterov = true, .clip_norm = 0.5},
          {.clip_norm = 1e6},
          {.clip_norm = 0.5, .clip_value = 0.2},
          {.type = OptimizerType::adamw, .clip_norm = 0.5},
          {.type = OptimizerType::adamw, .clip_value = 0.1},
          {.weight_decay = 0.1, .clip_norm = 0.5, .trust = Trust::lars}};
}

TEST(DeviceStep, MatchesCpuForEveryOptimizer) {
  for (std::size_t i = 0; i < rules().size(); ++i) {
    SCOPED_TRACE(i);
    Training here(at::kCPU, rules()[i]), there(kThere, rules()[i]);
    for (const std::int64_t id : {3, 1, 2}) {
      const auto ids = std::vector<std::int64_t>(static_cast<std::size_t>(id), id);
      expect_close(here.take(ids), there.take(ids));
      expect_close(here.all(), there.all(), 1e-6);
    }
  }
}

TEST(DeviceStep, KeepsWeightsIfStepIsNonFinite) {
  for (std::size_t i = 0; i < rules().size(); ++i)
    for (const auto trouble : {Trouble::loss, Trouble::gradient}) {
      SCOPED_TRACE(i);
      Training here(at::kCPU, rules()[i]), there(kThere, rules()[i]);
      for (auto* run : {&here, &there}) run->take({3});
      const auto before = there.all();
      for (auto* run : {&here, &there}) run->model.trouble = trouble;
      const auto end = there.take({2});
      expect_close(here.take({2}), end);
      EXPECT_THAT(end.rejected, HasSubstr(trouble == Trouble::loss ? "'fit'" : "'w'"));
      expect_close(before, there.all(), 0);
      for (auto* run : {&here, &there}) run->model.trouble = Trouble::none;
      expect_close(here.take({1}), there.take({1}));
      expect_close(here.all(), there.all(), 1e-6);
    }
}

// Setting the momentum to 0 clears the momentum buffers, unless the step is rejected.
TEST(DeviceStep, ClearsMomentumOnlyInAcceptedStep) {
  Training there(kThere, {});
  there.take({3});
  auto options = OptimizerOptions{.momentum = 0};
  there.step.optimizer().set_options(options);
  const auto before = there.all();
  there.model.trouble = Trouble::gradient;
  there.take({2});
  expect_close(before, there.all(), 0);
  there.model.trouble = Trouble::none;
  there.take({2});
  const auto kept = there.step.optimizer().state();
  EXPECT_EQ(kept[0].second.cpu().abs().max().item<double>(), 0);
}

// Gradients are divided by fp16's loss scale before their norm is measured and they are applied.
TEST(DeviceStep, DividesGradientsByLossScale) {
  for (const auto& rule : rules()) {
    if (rule.trust != Trust::none) continue;
    Training here(at::kCPU, rule), there(kThere, rule);
    const auto give = [](Training& run, at::Device device) {
      auto value = run.model.parameters().find("w")->value;
      value.mutable_grad() = at::tensor({4096.F, -1024.F, 512.F, 0.F}).to(device);
    };
    give(here, at::kCPU), give(there, kThere);
    const auto done = take_step(here.step.optimizer(), 0.1, 1024);
    auto& optimizer = there.step.optimizer();
    const auto measured = optimizer.measure(1024);
    optimizer.apply_unless(at::zeros({}).to(kThere), 0.1, measured);
    EXPECT_NEAR(measured.cpu().item<double>(), done.gradient_norm, 1e-5);
    expect_close(here.all(), there.all(), 1e-6);
  }
}

TEST(RunningStatistics, ReportAndUndoChanges) {
  for (const auto& device : {at::Device(at::kCPU), kThere}) {
    Parameters parameters;
    const auto add = [&](const char* name, const at::Tensor& value) {
      return parameters.add(name, value.to(device), ParameterKind::buffer);
    };
    const auto mean = add("mean", at::tensor({1.F, 2.F})), var = add("var", at::full({2, 3}, 4.F)),
               count = add("count", at::tensor({std::int64_t{1} << 60}, at::kLong));
    RunningStatistics statistics(parameters);
    EXPECT_EQ(statistics.moved().item<float>(), 0);
    for (const auto& value : {mean, var, count}) {
      statistics.keep();
      const auto before = statistics.bytes();
      value.add_(1);
      EXPECT_EQ(statistics.moved().item<float>(), 1);
      const auto after = statistics.bytes();
      EXPECT_NE(before, after);
      statistics.restore();
      EXPECT_EQ(statistics.moved().item<float>(), 0);
      EXPECT_EQ(statistics.bytes(), before);
      statistics.set(after);
      EXPECT_EQ(statistics.moved().item<float>(), 1);
      EXPECT_EQ(statistics.bytes(), after);
    }
    EXPECT_EQ(count.cpu().item<std::int64_t>(), (std::int64_t{1} << 60) + 1);
  }
}

// An exception in the destructor would end the process before the trainer could report the error.
TEST(BrokenDevice, ReleasesBatchWithoutThrowing) {
  const auto batch = small_batch();
  auto pixels = copied_ahead(batch, c10::Stream(c10::Stream::UNSAFE, kThere, 1));
  const BrokenDevice broken;
  EXPECT_THROW(pixels->copied->synchronize(), std::runtime_error);
  pixels.reset();
}

}  // namespace
}  // namespace millrace::testing
