#include "millrace/trainer/run/divergence.h"

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include "millrace/models/detector/restore.h"
#include "millrace/trainer/failed_steps.h"
#include "tests/trainer/fixture.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

at::Tensor bias_of(const Detector& model) {
  for (const auto& [name, values] : named_values(model))
    if (name == "line.bias") return values;
  throw Error("there is no bias");
}

/// Returns infinite losses from the seventh step if its bias is large.
struct PoisonedDetector final : LineDetector {
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    const bool is_poisoned = bias_of(*this).item<float>() > 1e5F;
    bad_from = is_poisoned ? 6 : 1 << 20;
    bad_until = 1 << 30;
    return LineDetector::compute_losses(batch, step);
  }
};

/// A training run whose fourth step makes the bias large unless the rate factor is at most
/// `harmless`. It saves a checkpoint after every step and returns to earlier checkpoints as
/// train.on_divergence does.
struct Diverging {
  Scratch scratch;
  double harmless = 0.2;
  OnReturn on_return = OnReturn::lower_rate;
  std::int64_t first_saved = 1;
  std::string config = "[train]\n";

  std::vector<std::int64_t> returned_to = {};
  Position end = {};

  fs::path checkpoints() const { return scratch / "run/checkpoints"; }

  TrainPlan plan(PoisonedDetector& model) const {
    auto plan = fake_plan(model, scratch / "run");
    plan.train.on_divergence = OnDivergence::go_back;
    plan.train.on_return = on_return;
    plan.train.epochs = 100;
    plan.train.max_steps = 30;
    plan.config = config;
    return plan;
  }

  /// Starts training once, from the newest checkpoint. `diverged` is the position at which the
  /// previous call diverged; nullopt = the run is resumed.
  TrainEnd start(const std::optional<Position>& diverged) {
    PoisonedDetector model;
    const auto plan = this->plan(model);
    auto callback = std::make_unique<LambdaCallback>();
    callback->on_before_step = [&](const TrainState& s) {
      const c10::NoGradGuard no_graph;
      if (s.at.step == 3 && s.at.rate_factor > harmless) bias_of(s.model).fill_(1e6);
    };
    callback->on_after_step = [&](const TrainState& s) {
      if (s.at.step >= first_saved && s.at.bad_in_a_row == 0) s.save_checkpoint();
    };
    CallbackList list;
    list.add("test", std::move(callback));
    Trainer trainer(plan, std::move(list));
    auto newest = newest_checkpoint(checkpoints());
    if (newest && diverged) {
      change_after_return(newest->at, *diverged, plan.train);
      returned_to.push_back(newest->at.returned_to);
    } else if (newest) {
      count_returns_anew(*newest, parse_config(config, "test.toml"));
    }
    if (newest) trainer.resume(*newest);
    return trainer.run();
  }

  void operator()() {
    auto ended = start({});
    while (ended.diverged) {
      end = ended.at;
      PoisonedDetector unused;
      remove_diverged_checkpoints(checkpoints(), ended.at, plan(unused).train);
      ended = start(ended.at);
    }
    end = ended.at;
  }

  std::vector<std::int64_t> saved() const {
    std::vector<std::int64_t> steps;
    for (const auto& one : list_checkpoints(checkpoints())) steps.push_back(step_of(one));
    return steps;
  }
};

TEST(Divergence, ReturnsFurtherBackUntilStepSucceeds) {
  Diverging run;
  run();
  // The checkpoint of step 6 is skipped: from it, the seventh step has the same weights and data
  // again.
  EXPECT_THAT(run.returned_to, ElementsAre(5, 4, 3));
  EXPECT_EQ(run.end.step, 30);
  EXPECT_EQ(run.end.bad_in_a_row, 0);
  EXPECT_EQ(run.end.failing_step, 0);
}

TEST(Divergence, ReturnsFurtherBackIfDataIsSkipped) {
  Diverging run{.harmless = 0, .on_return = OnReturn::skip_data};
  EXPECT_THROW(run(), Error);
  EXPECT_THAT(run.returned_to, ElementsAre(6, 5, 4, 3, 2));
}

TEST(Divergence, ResumesFurtherBackUntilStepSucceeds) {
  const Scratch scratch;
  std::vector<std::int64_t> resumed_from;
  std::int64_t diverged_at = 0, ended_at = 0;
  for (int start = 0; start < 6 && ended_at == 0; ++start) {
    PoisonedDetector model;  // the same initial weights each time
    auto plan = fake_plan(model, scratch / "run");
    plan.train.epochs = 100;
    plan.train.max_steps = 30;
    auto callback = std::make_unique<LambdaCallback>();
    callback->on_before_step = [&](const TrainState& s) {
      const c10::NoGradGuard no_graph;
      if (s.at.step == 3 && start == 0) bias_of(s.model).fill_(1e6);
    };
    callback->on_after_step = [](const TrainState& s) { s.save_checkpoint(); };
    CallbackList list;
    list.add("test", std::move(callback));
    Trainer trainer(plan, std::move(list));
    if (auto newest = newest_checkpoint(scratch / "run/checkpoints")) {
      resumed_from.push_back(newest->at.step);
      go_further_back(newest->at, diverged_at);
      trainer.resume(*newest);
    }
    try {
      ended_at = trainer.run().at.step;
    } catch (const Diverged& end) {
      diverged_at = end.at.step;
      remove_diverged_for_resume(scratch / "run/checkpoints", end.at);
    }
  }
  EXPECT_EQ(diverged_at, 16);
  EXPECT_THAT(resumed_from, ElementsAre(5, 4, 3));
  EXPECT_EQ(ended_at, 30);
}

TEST(Divergence, KeepsCheckpointsIfAllAreBad) {
  Diverging run{.first_saved = 6};
  EXPECT_THROW(run(), Error);
  EXPECT_THAT(run.returned_to, IsEmpty());
  EXPECT_THAT(run.saved(), ElementsAre(6));
}

TEST(Divergence, ResetsReturnCountAfterConfigurationChange) {
  Diverging run{.harmless = 0};
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(run.end.returns, 5);
  run.returned_to.clear();
  EXPECT_THROW(run(), Error) << "unchanged";
  EXPECT_THAT(run.returned_to, IsEmpty());

  run.config = "[optimizer]\nlr = 0.01\n";
  run.harmless = 1;  // the new configuration does not diverge
  run();
  // The newest checkpoints contain the large bias, so the run returns to an older checkpoint, as
  // after a divergence.
  EXPECT_THAT(run.returned_to, ElementsAre(5, 4, 3));
  EXPECT_EQ(run.end.step, 30);
  EXPECT_EQ(run.end.rate_factor, 0.125);  // three halvings of 1
}

TEST(Divergence, ResetsRateFactorOnlyIfOptimizerChanges) {
  Checkpoint checkpoint{
      .at = {.returns = 5, .rate_factor = 0.25, .returned_to = 3, .failing_step = 7},
      .config = "[optimizer]\nlr = 0.1\n[train]\nepochs = 3\noutput = 'a'\n"};
  const auto resumed = [&](const std::string& config) {
    auto copy = checkpoint;
    count_returns_anew(copy, parse_config(config, "test.toml"));
    return copy.at;
  };
  const auto elsewhere = resumed("[optimizer]\nlr = 0.1\n[train]\nepochs = 3\noutput = 'b'\n");
  EXPECT_EQ(elsewhere.returns, 5);
  EXPECT_EQ(elsewhere.failing_step, 7);
  const auto longer = resumed("[optimizer]\nlr = 0.1\n[train]\nepochs = 4\noutput = 'a'\n");
  EXPECT_EQ(longer.returns, 0);
  EXPECT_EQ(longer.failing_step, 0);
  EXPECT_EQ(longer.rate_factor, 0.25);
  const auto slower = resumed("[optimizer]\nlr = 0.05\n[train]\nepochs = 3\noutput = 'a'\n");
  EXPECT_EQ(slower.returns, 0);
  EXPECT_EQ(slower.rate_factor, 1);
}

}  // namespace
}  // namespace millrace::testing
