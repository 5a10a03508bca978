// The training loop: how long it runs, how it ends, and which steps it skips.
#include "millrace/trainer/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>

#include "millrace/base/errors.h"
#include "tests/support/log.h"
#include "tests/support/tensors.h"
#include "tests/trainer/fixture.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Trainer, EndsAfterEpochs) {
  Fixture f;
  std::vector<std::int64_t> epoch_ends;
  f.add().on_after_epoch = [&](const TrainState& s) { epoch_ends.push_back(s.at.step); };
  const auto end = f.run();
  EXPECT_EQ(end.at.step, 15);
  EXPECT_EQ(end.at.images, 30);
  EXPECT_EQ(end.at.progress, 3);
  EXPECT_THAT(epoch_ends, ElementsAre(5, 10, 15));
}

TEST(Trainer, EndsAtMaxSteps) {
  Fixture f;
  f.plan.train.max_steps = 7;
  std::vector<std::int64_t> last;
  f.add().on_after_step = [&](const TrainState& s) {
    EXPECT_EQ(s.total_steps, 7);
    if (s.is_last) last.push_back(s.at.step);
  };
  EXPECT_EQ(f.run().at.step, 7);
  EXPECT_THAT(last, ElementsAre(7));
}

TEST(Trainer, LearnsLine) {
  Fixture f;
  std::vector<double> losses;
  f.plan.train.epochs = 40;
  f.plan.schedule.milestones = {30};
  f.add().on_after_step = [&](const TrainState& s) { losses.push_back(s.scalars.at(2).value); };
  f.run();
  EXPECT_LT(losses.back(), 0.2 * losses.front());
}

TEST(Trainer, CallsAfterTrainIfDetectorThrows) {
  struct Odd final : LineDetector {
    LossSums compute_losses(const Batch&, const StepInfo&) override { throw 7; }
  } model;
  Fixture f;
  bool called = false;
  f.add().on_after_train = [&](const TrainState&) { called = true; };
  Trainer trainer(fake_plan(model, f.scratch / "run"), std::move(f.callbacks));
  EXPECT_THAT([&] { trainer.run(); }, ::testing::ThrowsMessage<Error>(HasSubstr("std::exception")));
  EXPECT_TRUE(called);
}

TEST(Trainer, CallsAfterTrainIfDataFails) {
  Fixture f;
  bool called = false;
  f.plan.start_data = [](const Cursor&) -> std::unique_ptr<DataFlow<Batch>> {
    return std::make_unique<FakeFlow>(10, 0, 4);
  };
  f.add().on_after_train = [&](const TrainState&) { called = true; };
  EXPECT_THAT(f.failure(), HasSubstr("data ended"));
  EXPECT_TRUE(called);
}

TEST(Trainer, LogsLengthAndSkippedSamples) {
  struct Skipping final : FakeFlow {
    Skipping() : FakeFlow(10, 0, 1 << 30) {}
    FlowReport report() const override {
      return {.skipped = 2, .skipped_reasons = {"a.jpg: is cut short"}};
    }
  };
  Fixture f;
  f.plan.start_data = [](const Cursor&) { return std::make_unique<Skipping>(); };
  Log log;
  f.run();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("info 15 steps of 2 images: 3 epochs of 10 samples\n"));
  EXPECT_THAT(text, HasSubstr("info learning rate 0.05, "));
  EXPECT_THAT(text, ::testing::ContainsRegex("warning 2 samples .*a.jpg: is cut short\n"));
}

TEST(Trainer, LogsFinalRateAndRoundedLength) {
  Fixture f;
  f.plan.schedule = {.type = ScheduleType::cosine, .warmup = "0 steps"};
  f.plan.train.max_steps = 5;
  double rate = 0;
  f.add().on_after_step = [&](const TrainState& s) { rate = s.lr; };
  Log log;
  f.run();
  EXPECT_NEAR(rate, 0.04173, 1e-5);
  EXPECT_THAT(log.take(), ::testing::AllOf(HasSubstr("train.max_steps = 5 "),
                                           HasSubstr(fmt::format(" {:.4g}\n", rate))));

  Fixture short_run;
  short_run.plan.train.epochs = 0.5;
  short_run.plan.schedule = {.milestones = {}, .warmup = "0 steps"};
  short_run.run();
  EXPECT_THAT(log.take(),
              HasSubstr("3 steps of 2 images: 0.6 epochs of 10 samples; train.epochs = 0.5"));
}

TEST(Trainer, StopsOnCallbackRequest) {
  Fixture f;
  f.add().on_after_step = [](const TrainState& s) {
    if (s.at.step == 4) s.stop("enough");
  };
  const auto end = f.run();
  EXPECT_EQ(end.at.step, 4);
  EXPECT_EQ(end.stop_reason, "enough");
  EXPECT_FALSE(end.signalled);
}

TEST(Trainer, StopsAtBoundaryAfterSignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    Fixture f;
    f.add().on_before_step = [&](const TrainState& s) {
      if (s.at.step == 6) std::raise(signal);
    };
    const auto end = f.run();
    EXPECT_EQ(end.at.step, 7);
    EXPECT_TRUE(end.signalled);
    EXPECT_EQ(end.stop_reason, "SIG" + std::string(::sigabbrev_np(signal)));
  }
}

TEST(Trainer, StopsWhileWaitingForData) {
  struct Stuck final : FakeFlow {
    Stuck() : FakeFlow(10, 0, 1 << 30) {}
    bool is_ready(std::chrono::milliseconds) override {
      if (asked++ == 3) std::raise(SIGTERM);
      return asked < 3;
    }
    int asked = 0;
  };
  Fixture f;
  f.plan.start_data = [](const Cursor&) { return std::make_unique<Stuck>(); };
  f.add().on_after_train = [](const TrainState& s) { s.save_checkpoint(); };
  const auto end = f.run();
  EXPECT_EQ(end.at.step, 2);
  EXPECT_TRUE(end.signalled);
  EXPECT_EQ(newest_checkpoint(f.scratch / "run" / "checkpoints")->at.step, 2);
}

TEST(Trainer, EndsAfterSignalInAnyHook) {
  using Hook = std::function<void(const TrainState&)> LambdaCallback::*;
  const struct {
    Hook hook;
    std::int64_t before;  // number of finished steps
    std::vector<int> signals;
    std::int64_t after;
  } cases[] = {{&LambdaCallback::on_before_train, 0, {SIGTERM}, 0},
               {&LambdaCallback::on_before_step, 6, {SIGTERM, SIGHUP, SIGHUP}, 7},
               {&LambdaCallback::on_after_train, 15, {SIGTERM}, 15}};
  for (const auto& one : cases) {
    Fixture f;
    f.add().*one.hook = [&](const TrainState& s) {
      if (s.at.step == one.before)
        for (const int signal : one.signals) std::raise(signal);
    };
    const auto end = f.run();
    EXPECT_EQ(end.at.step, one.after);
    EXPECT_TRUE(end.signalled);
    EXPECT_EQ(end.stop_reason, "SIGTERM");
  }
}

TEST(Trainer, ReportsCheckpointThatCannotBeWritten) {
  Fixture f;
  const auto& folder = f.scratch / "run";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "checkpoints") << "a file where the folder should be";
  std::int64_t steps = 0;
  auto& callback = f.add();
  callback.on_after_step = [&](const TrainState& s) {
    steps = s.at.step;
    if (s.at.step % 3 == 0) s.save_checkpoint();
  };
  EXPECT_THAT(f.failure(), HasSubstr("checkpoint of step 3"));
  EXPECT_LE(steps, 6) << "the next checkpoint waits for the previous one";
}

TEST(TrainerDeathTest, DiesOnSecondSignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Fixture f;
        f.add().on_before_step = [](const TrainState&) {
          std::raise(SIGTERM);
          std::raise(SIGTERM);
        };
        f.run();
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST(Trainer, SkipsStepsThatAreNotFinite) {
  Fixture f;
  f.model.bad_from = 3;
  f.model.bad_until = 12;  // nine steps in a row
  std::vector<at::Tensor> weights;
  f.add().on_after_step = [&](const TrainState&) {
    weights.push_back(f.model.parameters().find("line.weight")->value.detach().clone());
  };
  EXPECT_EQ(f.run().at.bad_steps, 9);
  EXPECT_TRUE(tensors_equal(weights[2], weights[11]));
  EXPECT_FALSE(tensors_equal(weights[11], weights[12]));
}

/// A detector whose running mean includes every loss, like the statistics of batch norm.
class RunningDetector final : public LineDetector {
 public:
  RunningDetector() {
    for (const auto& parameter : LineDetector::parameters())
      all_.add(parameter.name, parameter.value, parameter.kind);
    mean_ = all_.add("line.mean", at::zeros({1}), ParameterKind::buffer);
  }
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    auto losses = LineDetector::compute_losses(batch, step);
    mean_.lerp_(losses[0].sum.detach().reshape({1}), 0.5);
    return losses;
  }
  const Parameters& parameters() const override { return all_; }

 private:
  Parameters all_;
  at::Tensor mean_;
};

TEST(Trainer, RestoresStatisticsAfterSkippedSteps) {
  RunningDetector model;
  model.bad_from = 3;
  model.bad_until = 5;
  Fixture f;
  std::vector<at::Tensor> means;
  f.add().on_after_step = [&](const TrainState&) {
    means.push_back(model.parameters().find("line.mean")->value.clone());
  };
  Trainer(fake_plan(model, f.scratch / "other"), std::move(f.callbacks)).run();
  EXPECT_TRUE(tensors_equal(means[2], means[4]));
  EXPECT_FALSE(tensors_equal(means[4], means[5]));
  EXPECT_TRUE(means.back().isfinite().all().item<bool>());
}

TEST(Trainer, FailsAfterTenSkippedSteps) {
  Fixture f;
  f.model.bad_from = 3;
  f.model.bad_until = 100;
  const auto why = f.failure();
  EXPECT_THAT(why, HasSubstr("step 13: the loss 'fit' is inf"));
  EXPECT_THAT(why, HasSubstr("10th"));
}

TEST(Trainer, FailsIfLastStepsWereSkipped) {
  for (const std::int64_t good : {0, 1, 2, 3, 5}) {
    Fixture f;
    f.plan.train.max_steps = 6;
    f.model.bad_from = good;
    f.model.bad_until = 100;
    f.add().on_after_step = [](const TrainState& s) {
      if (s.at.bad_in_a_row == 0 || s.is_last) s.save_checkpoint();
    };
    EXPECT_EQ(f.failure().empty(), good >= 3) << good;
    const auto newest = newest_checkpoint(f.plan.folder / "checkpoints");
    EXPECT_EQ(newest ? newest->at.step : 0, good >= 3 ? 6 : good);
  }
}

TEST(Trainer, RejectsCheckpointOfAnotherModel) {
  Fixture f;
  Trainer trainer(f.plan, {});
  const Checkpoint other{.model = {{"line.weight", at::zeros({4})}, {"line.bias", at::zeros({1})}}};
  EXPECT_THAT(message_of([&] { trainer.resume(other); }), HasSubstr("line.weight"));
}

}  // namespace
}  // namespace millrace::testing
