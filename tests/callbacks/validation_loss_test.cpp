#include <gmock/gmock.h>

#include <csignal>

#include "tests/callbacks/training.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;

/// A detector with known validation losses that counts its evaluation calls.
struct Measured final : LineDetector {
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    auto losses = LineDetector::compute_losses(batch, step);
    if (!step.without_training) return losses;
    EXPECT_FALSE(losses[0].sum.requires_grad());
    EXPECT_EQ(step.step, asked++ % 5);
    if (signal_at == asked) std::raise(SIGTERM);
    return {{"a", at::tensor(static_cast<float>(batch.images[0].image_id)), {"batches", 1}},
            {"b", at::tensor(2.F), {"batches", 1}}};
  }
  std::int64_t asked = 0;
  std::int64_t signal_at = -1;
};

Training measuring_training(const std::filesystem::path& folder, const std::string& toml = "") {
  return {.folder = folder,
          .declared = {{"validation_loss", toml},
                       {"log", "every = '3 steps'"},
                       {"checkpoint", "every = '4 steps'"}},
          .make_model = [] { return std::make_unique<Measured>(); }};
}

TEST(ValidationLoss, IsMeanOverImages) {
  const Scratch scratch;
  measuring_training(scratch / "run")();
  double sum = 0;
  FakePass flow(kEpochImages, {});
  while (const auto batch = flow.next())
    sum += static_cast<double>(2 * batch->value.images[0].image_id);
  std::vector<int> steps;
  for (const auto& line : metrics(scratch / "run")) {
    if (!line.contains("val/loss")) continue;
    steps.push_back(line.at("step"));
    EXPECT_DOUBLE_EQ(line.at("val/a").get<double>(), sum / 10);
    EXPECT_EQ(line.at("val/b"), 2);
    EXPECT_DOUBLE_EQ(line.at("val/loss").get<double>(), sum / 10 + 2);
  }
  EXPECT_THAT(steps, ElementsAre(5, 10, 15));
}

TEST(ValidationLoss, DoesNotChangeTraining) {
  const Scratch scratch;
  measuring_training(scratch / "with")();
  auto without = measuring_training(scratch / "without");
  without.declared.erase(without.declared.begin());
  without();
  for (const auto* file : {"model.safetensors", "optimizer.safetensors"})
    EXPECT_EQ(read_file(scratch / "with" / "checkpoints" / "latest" / file),
              read_file(scratch / "without" / "checkpoints" / "latest" / file));
}

TEST(ValidationLoss, IsRepeatedAfterSignal) {
  const Scratch scratch;
  measuring_training(scratch / "whole")();
  auto stopped = measuring_training(scratch / "stopped");
  stopped.make_model = [] {
    auto model = std::make_unique<Measured>();
    model->signal_at = 8;  // in the middle of the second evaluation
    return model;
  };
  const auto end = stopped();
  EXPECT_TRUE(end.signalled);
  EXPECT_EQ(end.at.step, 10);
  measuring_training(scratch / "stopped")();
  const auto curve = [](const std::filesystem::path& run) {
    std::vector<std::pair<int, double>> points;
    for (const auto& line : metrics(run))
      if (line.contains("val/loss")) points.emplace_back(line.at("step"), line.at("val/loss"));
    return points;
  };
  EXPECT_EQ(curve(scratch / "stopped"), curve(scratch / "whole"));
}

TEST(ValidationLoss, UsesRequestedNumberOfImages) {
  const Scratch scratch;
  std::int64_t most = 0;
  auto run = measuring_training(scratch / "run", "images = 3");
  struct Counting final : LineDetector {
    explicit Counting(std::int64_t& number) : last(number) {}
    LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
      if (step.without_training) last = std::max(last, step.step);
      return LineDetector::compute_losses(batch, step);
    }
    std::int64_t& last;
  };
  run.make_model = [&] { return std::make_unique<Counting>(most); };
  run();
  EXPECT_EQ(most, 1);  // two batches of two images
}

}  // namespace
}  // namespace millrace::testing
