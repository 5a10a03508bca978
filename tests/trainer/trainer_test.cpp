#include "millrace/trainer/trainer.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "millrace/base/errors.h"
#include "tests/support/fake_training.h"
#include "tests/support/log.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A training with lambdas around it.
struct Fixture {
  Scratch scratch;
  LineDetector model;
  TrainPlan plan = fake_plan(model, scratch / "run");
  CallbackList callbacks;

  LambdaCallback& add(std::string name = "test") {
    auto callback = std::make_unique<LambdaCallback>();
    auto& reference = *callback;
    callbacks.add(std::move(name), std::move(callback));
    return reference;
  }
  TrainEnd run() { return Trainer(plan, std::move(callbacks)).run(); }
  std::string failure() {
    return message_of<std::exception>([&] { run(); });
  }
};

TEST(Trainer, EndsWhereProgressReachesTheEpochs) {
  Fixture f;
  std::vector<std::int64_t> epoch_ends;
  f.add().on_after_epoch = [&](TrainState& s) { epoch_ends.push_back(s.at.step); };
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
  f.add().on_after_step = [&](TrainState& s) {
    EXPECT_EQ(s.total_steps, 7);
    if (s.is_last) last.push_back(s.at.step);
  };
  EXPECT_EQ(f.run().at.step, 7);
  EXPECT_THAT(last, ElementsAre(7));
}

TEST(Trainer, LearnsTheLine) {
  Fixture f;
  std::vector<double> losses;
  f.plan.train.epochs = 40;
  f.plan.schedule.milestones = {30};
  f.add().on_after_step = [&](TrainState& s) { losses.push_back(s.scalars.at(2).value); };
  f.run();
  EXPECT_LT(losses.back(), 0.2 * losses.front());
}

TEST(Trainer, PublishesAtTheBoundaryWhateverTheOrder) {
  for (const bool listener_first : {false, true}) {
    Fixture f;
    f.plan.train.max_steps = 2;
    std::vector<double> heard;
    const auto listen = [&] {
      f.add("listener").on_published = [&](TrainState&, const Moment&, const Scalars& scalars) {
        for (const auto& [name, value] : scalars) heard.push_back(value);
      };
    };
    if (listener_first) listen();
    f.add("b").on_after_step = [](TrainState& s) { s.publish({{"b", 10.0 + double(s.at.step)}}); };
    f.add("a").on_after_step = [](TrainState& s) { s.publish({{"a", double(s.at.step)}}); };
    if (!listener_first) listen();
    f.run();
    EXPECT_THAT(heard, ElementsAre(1, 11, 2, 12));
  }
}

TEST(Trainer, HandsOutWhatSpeaksOfEarlierMomentsFirst) {
  Fixture f;
  f.plan.train.max_steps = 3;
  std::vector<std::tuple<std::int64_t, std::int64_t, double>> heard;  // when, of which step, what
  f.add().on_after_step = [](TrainState& s) {
    if (s.at.step != 3) return;
    s.publish({{"now", 3}});
    s.publish({2, 0.4}, {{"late", 2}});
    s.publish({1, 0.2}, {{"late", 1}});
    s.publish(s.now(), {{"also now", 4}});
  };
  f.add("listener").on_published = [&](TrainState& s, const Moment& of, const Scalars& scalars) {
    EXPECT_NEAR(of.progress, 0.2 * static_cast<double>(of.step), 1e-12);
    for (const auto& [name, value] : scalars) heard.emplace_back(s.at.step, of.step, value);
  };
  f.run();
  EXPECT_THAT(heard, ElementsAre(std::tuple(3, 1, 1.0), std::tuple(3, 2, 2.0),
                                 std::tuple(3, 3, 4.0), std::tuple(3, 3, 3.0)));
}

TEST(Trainer, SettlesWhatIsAskedForBeforeTheFirstStep) {
  Fixture f;
  f.add().on_before_train = [](TrainState& s) {
    s.publish({{"early", 1}});
    s.save_checkpoint();
    s.stop("nothing to do");
  };
  std::vector<std::int64_t> heard;
  f.add("listener").on_published = [&](TrainState& s, const Moment&, const Scalars& scalars) {
    if (!scalars.empty()) heard.push_back(s.at.step);
  };
  EXPECT_EQ(f.run().at.step, 0);
  EXPECT_THAT(heard, ElementsAre(0));
  EXPECT_EQ(newest_checkpoint(f.scratch / "run" / "checkpoints")->at.step, 0);
}

TEST(Trainer, CallsTheOthersAndAfterTrainWhereOneCallbackFails) {
  Fixture f;
  int steps = 0, ended = 0;
  f.add("broken").on_after_step = [](TrainState& s) {
    if (s.at.step == 3) throw Error("broke at 3");
  };
  auto& sound = f.add("sound");
  sound.on_after_step = [&](TrainState&) { ++steps; };
  sound.on_after_train = [&](TrainState& s) {
    ++ended;
    EXPECT_EQ(s.failure, "callback 'broken' failed in after_step: broke at 3");
  };
  EXPECT_EQ(f.failure(), "callback 'broken' failed in after_step: broke at 3");
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(ended, 1);
}

/// Throws in one hook: an Error, or something that is no exception.
struct Thrower final : Callback, ReadsMetrics, SavesState, SavesTensors {
  std::string where;
  bool sound_type;

  Thrower(std::string hook, bool exception) : where(std::move(hook)), sound_type(exception) {}
  void in(const std::string& hook) const {
    if (hook == where && sound_type) throw Error("no good");
    if (hook == where) throw 7;
  }
  void before_train(TrainState&) override { in("before_train"); }
  void before_epoch(TrainState&) override { in("before_epoch"); }
  void before_step(TrainState&) override { in("before_step"); }
  void after_step(TrainState& s) override {
    in("after_step");
    s.save_checkpoint();
  }
  void after_epoch(TrainState&) override { in("after_epoch"); }
  void after_train(TrainState&) override { in("after_train"); }
  void trigger(TrainState&) override { in("trigger"); }
  void on_scalars(TrainState& s, const Moment&, const Scalars&) override {
    if (s.at.step > 0) in("on_scalars");
  }
  void on_checkpoint(TrainState&, const std::filesystem::path&) override { in("on_checkpoint"); }
  nlohmann::json save_state() const override {
    in("save_state");
    return {};
  }
  void load_state(TrainState&, const nlohmann::json&) override {}
  NamedTensors save_tensors() const override {
    in("save_tensors");
    return {};
  }
  void load_tensors(TrainState&, const NamedTensors&) override {}
};

TEST(Trainer, NamesTheCallbackThatFailsInAnyHook) {
  for (const auto* hook :
       {"before_train", "before_epoch", "before_step", "after_step", "after_epoch", "after_train",
        "trigger", "on_scalars", "on_checkpoint", "save_state", "save_tensors"})
    for (const bool exception : {true, false}) {
      Fixture f;
      int ended = 0;
      f.callbacks.add("bad", std::make_unique<Thrower>(hook, exception),
                      When(Every(parse_period("1 steps"))));
      f.add("sound").on_after_train = [&](TrainState&) { ++ended; };
      EXPECT_EQ(
          f.failure(),
          fmt::format("callback 'bad' failed in {}: {}", hook,
                      exception ? "no good" : "it threw something that is no std::exception"));
      EXPECT_EQ(ended, 1) << hook;
    }
}

TEST(Trainer, CallsAfterTrainWhereTheDetectorThrowsSomethingThatIsNoException) {
  struct Odd final : LineDetector {
    Losses losses(const Batch&, const StepInfo&) override { throw 7; }
  } model;
  Fixture f;
  bool called = false;
  f.add().on_after_train = [&](TrainState&) { called = true; };
  Trainer trainer(fake_plan(model, f.scratch / "run"), std::move(f.callbacks));
  EXPECT_THAT([&] { trainer.run(); },
              ::testing::ThrowsMessage<Error>(HasSubstr("no std::exception")));
  EXPECT_TRUE(called);
}

TEST(When, AsksItsConditionAndTheStart) {
  struct Note final : Callback {
    std::vector<std::int64_t>& steps;
    explicit Note(std::vector<std::int64_t>& into) : steps(into) {}
    void trigger(TrainState& state) override { steps.push_back(state.at.step); }
  };
  const auto triggered = [](const std::string& condition, bool at_start) {
    Fixture f;
    std::vector<std::int64_t> steps;
    f.callbacks.add("note", std::make_unique<Note>(steps),
                    When(Every(parse_period("4 steps")), Condition(condition), at_start));
    f.add("later").on_after_step = [](TrainState& s) {
      if (s.at.step == 8) s.publish({{"x", 1}});
    };
    f.run();
    return steps;
  };
  EXPECT_THAT(triggered("step >= 8", true), ElementsAre(8, 12, 15));
  EXPECT_THAT(triggered("epoch < 2", true), ElementsAre(0, 4, 8));
  EXPECT_THAT(triggered("epoch < 2", false), ElementsAre(4, 8));
  // What is published at a boundary counts from the next one on, in any order of callbacks.
  EXPECT_THAT(triggered("x > 0", true), ElementsAre(12, 15));
}

TEST(HyperParameters, OfACheckpointAreThoseThatWereChanged) {
  HyperParameters first({.momentum = 0.9, .weight_decay = 0.1});
  first.set("optimizer.momentum", 0.8, "test");
  first.apply();
  HyperParameters resumed({.momentum = 0.9, .weight_decay = 0.2});  // another configuration
  resumed.load(first.changed());
  EXPECT_EQ(resumed.at("optimizer.momentum"), 0.8);
  EXPECT_EQ(resumed.at("optimizer.weight_decay"), 0.2);
}

TEST(Trainer, CallsAfterTrainWhereTheDataFails) {
  Fixture f;
  bool called = false;
  f.plan.start_data = [](const Cursor&) -> std::unique_ptr<DataFlow<Batch>> {
    return std::make_unique<FakeFlow>(10, 0, 4);
  };
  f.add().on_after_train = [&](TrainState&) { called = true; };
  EXPECT_THAT(f.failure(), HasSubstr("data ended"));
  EXPECT_TRUE(called);
}

TEST(Trainer, SaysHowLongItIsAndWhatWasLeftOut) {
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
  EXPECT_THAT(text, HasSubstr("info learning rate 0.05, after a linear warm-up from 0.005 over 4 "
                              "steps, times 0.1 at epoch 2\n"));
  EXPECT_THAT(text, HasSubstr("warning 2 samples of the training data could not be used and were "
                              "left out; the first: a.jpg: is cut short\n"));
}

TEST(Trainer, StopsPolitelyWhenACallbackAsks) {
  Fixture f;
  f.add().on_after_step = [](TrainState& s) {
    if (s.at.step == 4) s.stop("enough");
  };
  const auto end = f.run();
  EXPECT_EQ(end.at.step, 4);
  EXPECT_EQ(end.stop_reason, "enough");
  EXPECT_FALSE(end.signalled);
}

TEST(Trainer, StopsAtTheNextBoundaryAfterASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    Fixture f;
    f.add().on_before_step = [&](TrainState& s) {
      if (s.at.step == 6) std::raise(signal);
    };
    const auto end = f.run();
    EXPECT_EQ(end.at.step, 7);
    EXPECT_TRUE(end.signalled);
    EXPECT_EQ(end.stop_reason, "SIG" + std::string(::sigabbrev_np(signal)));
  }
}

TEST(Trainer, StopsWhileItWaitsForData) {
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
  f.add().on_after_train = [](TrainState& s) { s.save_checkpoint(); };
  const auto end = f.run();
  EXPECT_EQ(end.at.step, 2);
  EXPECT_TRUE(end.signalled);
  EXPECT_EQ(newest_checkpoint(f.scratch / "run" / "checkpoints")->at.step, 2);
}

TEST(Trainer, EndsAfterASignalWheneverItComes) {
  using Hook = std::function<void(TrainState&)> LambdaCallback::*;
  const struct {
    Hook hook;
    std::int64_t before;  // steps done
    std::vector<int> signals;
    std::int64_t after;
  } cases[] = {{&LambdaCallback::on_before_train, 0, {SIGTERM}, 0},
               {&LambdaCallback::on_before_step, 6, {SIGTERM, SIGHUP, SIGHUP}, 7},
               {&LambdaCallback::on_after_train, 15, {SIGTERM}, 15}};
  for (const auto& one : cases) {
    Fixture f;
    f.add().*one.hook = [&](TrainState& s) {
      if (s.at.step == one.before)
        for (const int signal : one.signals) std::raise(signal);
    };
    const auto end = f.run();
    EXPECT_EQ(end.at.step, one.after);
    EXPECT_TRUE(end.signalled);
    EXPECT_EQ(end.stop_reason, "SIGTERM");
  }
}

TEST(Trainer, EndsWithASentenceWhereACheckpointCannotBeWritten) {
  Fixture f;
  const auto& folder = f.scratch / "run";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "checkpoints") << "a file where the folder should be";
  std::int64_t steps = 0;
  auto& callback = f.add();
  callback.on_after_step = [&](TrainState& s) {
    steps = s.at.step;
    if (s.at.step % 3 == 0) s.save_checkpoint();
  };
  EXPECT_THAT(f.failure(), HasSubstr("the checkpoint of step 3 cannot be written: "));
  EXPECT_LE(steps, 6) << "the next checkpoint waits for the one before";
}

TEST(TrainerDeathTest, LeavesTheSecondSignalToTheSystem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Fixture f;
        f.add().on_before_step = [](TrainState&) {
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
  f.model.bad_until = 12;  // nine in a row
  std::vector<at::Tensor> weights;
  f.add().on_after_step = [&](TrainState&) {
    weights.push_back(f.model.parameters().find("line.weight")->value.detach().clone());
  };
  EXPECT_EQ(f.run().at.bad_steps, 9);
  EXPECT_TRUE(same(weights[2], weights[11]));
  EXPECT_FALSE(same(weights[11], weights[12]));
}

/// Its running mean takes in every loss, as a batch normalisation's does.
class RunningDetector final : public LineDetector {
 public:
  RunningDetector() {
    for (const auto& parameter : LineDetector::parameters())
      all_.add(parameter.name, parameter.value, parameter.kind);
    mean_ = all_.add("line.mean", at::zeros({1}), ParameterKind::buffer);
  }
  Losses losses(const Batch& batch, const StepInfo& step) override {
    auto losses = LineDetector::losses(batch, step);
    mean_.lerp_(losses[0].second.detach().reshape({1}), 0.5);
    return losses;
  }
  const Parameters& parameters() const override { return all_; }

 private:
  Parameters all_;
  at::Tensor mean_;
};

TEST(Trainer, KeepsRunningStatisticsCleanOfStepsThatAreNotFinite) {
  RunningDetector model;
  model.bad_from = 3;
  model.bad_until = 5;
  Fixture f;
  std::vector<at::Tensor> means;
  f.add().on_after_step = [&](TrainState&) {
    means.push_back(model.parameters().find("line.mean")->value.clone());
  };
  Trainer(fake_plan(model, f.scratch / "other"), std::move(f.callbacks)).run();
  EXPECT_TRUE(same(means[2], means[4]));
  EXPECT_FALSE(same(means[4], means[5]));
  EXPECT_TRUE(means.back().isfinite().all().item<bool>());
}

TEST(Trainer, GivesUpAfterTenStepsThatAreNotFinite) {
  Fixture f;
  f.model.bad_from = 3;
  f.model.bad_until = 100;
  const auto why = f.failure();
  EXPECT_THAT(why, HasSubstr("step 13: the loss 'fit' is inf"));
  EXPECT_THAT(why, HasSubstr("10th such step in a row"));
}

TEST(Trainer, RefusesTheCheckpointOfAnotherModel) {
  Fixture f;
  Trainer trainer(f.plan, {});
  const Checkpoint other{.model = {{"line.weight", at::zeros({4})}, {"line.bias", at::zeros({1})}}};
  EXPECT_THAT(message_of([&] { trainer.resume(other); }), HasSubstr("line.weight"));
}

TEST(Trainer, TriggersOnlyWhenAllHaveSeenTheStep) {
  struct Trigger final : Callback {
    std::function<void()> work;
    void trigger(TrainState&) override { work(); }
  };
  Fixture f;
  std::int64_t seen = 0;
  std::vector<std::int64_t> triggered;
  auto first = std::make_unique<Trigger>();
  first->work = [&] { triggered.push_back(seen); };
  f.callbacks.add("first", std::move(first), Every(parse_period("7 steps")));
  f.add("second").on_after_step = [&](TrainState& s) { seen = s.at.step; };
  f.run();
  EXPECT_THAT(triggered, ElementsAre(7, 14, 15));
}

TEST(Trainer, ChangesHyperParametersFromTheNextStepOn) {
  Fixture f;
  std::vector<double> rates;
  f.plan.schedule = {.type = "constant", .warmup = "0 steps"};
  f.plan.train.max_steps = 4;
  f.add().on_after_step = [&](TrainState& s) {
    rates.push_back(s.lr);
    if (s.at.step == 2) s.hyper.set("lr_factor", 0.5, "test");
  };
  f.run();
  EXPECT_THAT(rates, ElementsAre(0.05, 0.05, 0.025, 0.025));
}

TEST(HyperParameters, RefuseWhatOrderWouldDecide) {
  HyperParameters hyper({});
  hyper.set("optimizer.momentum", 0.8, "one");
  hyper.set("optimizer.momentum", 0.8, "two");
  EXPECT_THAT([&] { hyper.set("optimizer.momentum", 0.7, "three"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("'one' and 'three' both set")));
  EXPECT_EQ(hyper.at("optimizer.momentum"), 0.9);
  hyper.apply();
  EXPECT_EQ(hyper.at("optimizer.momentum"), 0.8);
  EXPECT_THROW(hyper.set("optimizer.momentum", 1.5, "one"), Error);
  EXPECT_THAT([&] { hyper.set("optimizer.momentun", 0.5, "one"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("did you mean 'optimizer.momentum'")));
}

TEST(Trainer, KeepsTensorsOfCallbacksInCheckpoints) {
  struct Keeper final : Callback, SavesTensors {
    at::Tensor kept = at::zeros({2});
    void after_step(TrainState& s) override {
      kept.fill_(static_cast<double>(s.at.step));
      if (s.is_last) s.save_checkpoint();
    }
    NamedTensors save_tensors() const override { return {{"kept", kept}}; }
    void load_tensors(TrainState&, const NamedTensors& tensors) override {
      kept = tensors.at(0).second;
    }
  };
  Fixture f;
  f.callbacks.add("keeper", std::make_unique<Keeper>());
  f.run();
  const auto saved = newest_checkpoint(f.scratch / "run" / "checkpoints");
  auto again = std::make_unique<Keeper>();
  const auto& keeper = *again;
  CallbackList list;
  list.add("keeper", std::move(again));
  Trainer trainer(f.plan, std::move(list));
  trainer.resume(*saved);
  EXPECT_TRUE(same(keeper.kept, at::full({2}, 15.0)));
}

}  // namespace
}  // namespace millrace::testing
