// What callbacks request between steps takes effect in a fixed order, which does not depend on the
// order of the callbacks.
#include "millrace/trainer/step_boundary.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <tuple>

#include "millrace/base/errors.h"
#include "tests/support/tensors.h"
#include "tests/trainer/fixture.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StepBoundary, PublishesIndependentlyOfOrder) {
  for (const bool listener_first : {false, true}) {
    Fixture f;
    f.plan.train.max_steps = 2;
    std::vector<double> heard;
    const auto listen = [&] {
      f.add("listener").on_published = [&](const TrainState&, const Moment&,
                                           const Scalars& scalars) {
        for (const auto& [name, value] : scalars) heard.push_back(value);
      };
    };
    if (listener_first) listen();
    f.add("b").on_after_step = [](const TrainState& s) {
      s.publish({{"b", 10.0 + double(s.at.step)}});
    };
    f.add("a").on_after_step = [](const TrainState& s) { s.publish({{"a", double(s.at.step)}}); };
    if (!listener_first) listen();
    f.run();
    EXPECT_THAT(heard, ElementsAre(1, 11, 2, 12));
  }
}

TEST(StepBoundary, PublishesEarlierStepsFirst) {
  Fixture f;
  f.plan.train.max_steps = 3;
  // The step of publication, the step of the metric, and its value.
  std::vector<std::tuple<std::int64_t, std::int64_t, double>> heard;
  f.add().on_after_step = [](const TrainState& s) {
    if (s.at.step != 3) return;
    s.publish({{"now", 3}});
    s.publish({2, 0.4}, {{"late", 2}});
    s.publish({1, 0.2}, {{"late", 1}});
    s.publish(s.now(), {{"also now", 4}});
  };
  f.add("listener").on_published = [&](const TrainState& s, const Moment& of,
                                       const Scalars& scalars) {
    EXPECT_NEAR(of.progress, 0.2 * static_cast<double>(of.step), 1e-12);
    for (const auto& [name, value] : scalars) heard.emplace_back(s.at.step, of.step, value);
  };
  f.run();
  EXPECT_THAT(heard, ElementsAre(std::tuple(3, 1, 1.0), std::tuple(3, 2, 2.0),
                                 std::tuple(3, 3, 4.0), std::tuple(3, 3, 3.0)));
}

TEST(StepBoundary, HandlesRequestsBeforeFirstStep) {
  Fixture f;
  f.add().on_before_train = [](const TrainState& s) {
    s.publish({{"early", 1}});
    s.save_checkpoint();
    s.stop("nothing to do");
  };
  std::vector<std::int64_t> heard;
  f.add("listener").on_published = [&](const TrainState& s, const Moment&, const Scalars& scalars) {
    if (!scalars.empty()) heard.push_back(s.at.step);
  };
  EXPECT_EQ(f.run().at.step, 0);
  EXPECT_THAT(heard, ElementsAre(0));
  EXPECT_EQ(newest_checkpoint(f.scratch / "run" / "checkpoints")->at.step, 0);
}

TEST(StepBoundary, CallsOtherCallbacksAfterFailure) {
  Fixture f;
  int steps = 0, ended = 0;
  f.add("broken").on_after_step = [](const TrainState& s) {
    if (s.at.step == 3) throw Error("broke at 3");
  };
  auto& sound = f.add("sound");
  sound.on_after_step = [&](const TrainState&) { ++steps; };
  sound.on_after_train = [&](const TrainState& s) {
    ++ended;
    EXPECT_EQ(s.failure, "callback 'broken' failed in after_step: broke at 3");
  };
  EXPECT_EQ(f.failure(), "callback 'broken' failed in after_step: broke at 3");
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(ended, 1);
}

/// Throws in one hook an Error, or a value that is not a std::exception.
struct Thrower final : Callback, ReadsMetrics, SavesState, SavesTensors {
  std::string where;
  bool sound_type;

  Thrower(std::string hook, bool exception) : where(std::move(hook)), sound_type(exception) {}
  void in(const std::string& hook) const {
    if (hook == where && sound_type) throw Error("no good");
    if (hook == where) throw 7;
  }
  void before_train(const TrainState&) override { in("before_train"); }
  void before_epoch(const TrainState&) override { in("before_epoch"); }
  void before_step(const TrainState&) override { in("before_step"); }
  void after_step(const TrainState& s) override {
    in("after_step");
    s.save_checkpoint();
  }
  void after_epoch(const TrainState&) override { in("after_epoch"); }
  void after_train(const TrainState&) override { in("after_train"); }
  void trigger(const TrainState&) override { in("trigger"); }
  void on_scalars(const TrainState& s, const Moment&, const Scalars&) override {
    if (s.at.step > 0) in("on_scalars");
  }
  void on_checkpoint(const TrainState&, const std::filesystem::path&) override {
    in("on_checkpoint");
  }
  nlohmann::json save_state() const override {
    in("save_state");
    return {};
  }
  void load_state(const TrainState&, const nlohmann::json&) override {}
  NamedTensors save_tensors() const override {
    in("save_tensors");
    return {};
  }
  void load_tensors(const TrainState&, const NamedTensors&) override {}
};

TEST(StepBoundary, ReportsFailingCallbackAndHook) {
  for (const auto* hook :
       {"before_train", "before_epoch", "before_step", "after_step", "after_epoch", "after_train",
        "trigger", "on_scalars", "on_checkpoint", "save_state", "save_tensors"})
    for (const bool exception : {true, false}) {
      Fixture f;
      int ended = 0;
      f.callbacks.add("bad", std::make_unique<Thrower>(hook, exception),
                      When(Every(parse_period("1 steps"))));
      f.add("sound").on_after_train = [&](const TrainState&) { ++ended; };
      EXPECT_THAT(f.failure(),
                  ::testing::AllOf(HasSubstr(fmt::format("callback 'bad' failed in {}: ", hook)),
                                   HasSubstr(exception ? "no good" : "std::exception")));
      EXPECT_EQ(ended, 1) << hook;
    }
}

TEST(StepBoundary, DoesNotSaveFailedStep) {
  const std::map<std::string, std::function<void(LambdaCallback&)>> hooks = {
      {"after_step",
       [](LambdaCallback& c) {
         c.on_after_step = [](const TrainState& s) {
           if (s.at.step == 3) throw Error("no room");
         };
       }},
      {"on_scalars",
       [](LambdaCallback& c) {
         c.on_published = [](const TrainState& s, const Moment&, const Scalars&) {
           if (s.at.step == 3) throw Error("no room");
         };
       }},
      {"after_train", [](LambdaCallback& c) {
         c.on_after_step = [](const TrainState& s) {
           if (s.at.step == 2) s.stop("test");
         };
         c.on_after_train = [](const TrainState& s) {
           // imitates a callback that saves after the last step
           const_cast<TrainState&>(s).at.step = 3;
           s.save_checkpoint();
           throw Error("no room");
         };
       }}};
  for (const auto& [hook, set] : hooks) {
    Fixture f;
    f.add("saver").on_after_step = [](const TrainState& s) { s.save_checkpoint(); };
    set(f.add("broken"));
    EXPECT_EQ(f.failure(), "callback 'broken' failed in " + hook + ": no room");
    EXPECT_EQ(newest_checkpoint(f.scratch / "run" / "checkpoints")->at.step, 2) << hook;
  }
}

TEST(When, CombinesPeriodConditionAndAtStart) {
  struct Note final : Callback {
    std::vector<std::int64_t>& steps;
    explicit Note(std::vector<std::int64_t>& into) : steps(into) {}
    void trigger(const TrainState& state) override { steps.push_back(state.at.step); }
  };
  const auto triggered = [](const std::string& condition, bool at_start) {
    Fixture f;
    std::vector<std::int64_t> steps;
    f.callbacks.add("note", std::make_unique<Note>(steps),
                    When(Every(parse_period("4 steps")), Condition(condition), at_start));
    f.add("later").on_after_step = [](const TrainState& s) {
      if (s.at.step == 8) s.publish({{"x", 1}});
    };
    f.run();
    return steps;
  };
  EXPECT_THAT(triggered("step >= 8", true), ElementsAre(8, 12, 15));
  EXPECT_THAT(triggered("epoch < 2", true), ElementsAre(0, 4, 8));
  EXPECT_THAT(triggered("epoch < 2", false), ElementsAre(4, 8));
  // Metrics published at a boundary are used from the next boundary, whatever the order of the
  // callbacks.
  EXPECT_THAT(triggered("x > 0", true), ElementsAre(12, 15));
}

TEST(HyperParameters, SaveOnlyChangedValues) {
  HyperParameters first({.momentum = 0.9, .weight_decay = 0.1});
  first.set("optimizer.momentum", 0.8, "test");
  first.apply();
  HyperParameters resumed({.momentum = 0.9, .weight_decay = 0.2});  // a different configuration
  resumed.load(first.changed());
  EXPECT_EQ(resumed.at("optimizer.momentum"), 0.8);
  EXPECT_EQ(resumed.at("optimizer.weight_decay"), 0.2);
}

TEST(StepBoundary, TriggersAfterAllHooks) {
  struct Trigger final : Callback {
    std::function<void()> work;
    void trigger(const TrainState&) override { work(); }
  };
  Fixture f;
  std::int64_t seen = 0;
  std::vector<std::int64_t> triggered;
  auto first = std::make_unique<Trigger>();
  first->work = [&] { triggered.push_back(seen); };
  f.callbacks.add("first", std::move(first), Every(parse_period("7 steps")));
  f.add("second").on_after_step = [&](const TrainState& s) { seen = s.at.step; };
  f.run();
  EXPECT_THAT(triggered, ElementsAre(7, 14, 15));
}

TEST(StepBoundary, ChangesHyperParametersAtNextStep) {
  Fixture f;
  std::vector<double> rates;
  f.plan.schedule = {.type = ScheduleType::constant, .warmup = "0 steps"};
  f.plan.train.max_steps = 4;
  f.add().on_after_step = [&](const TrainState& s) {
    rates.push_back(s.lr);
    if (s.at.step == 2) s.hyper.set("lr_factor", 0.5, "test");
  };
  f.run();
  EXPECT_THAT(rates, ElementsAre(0.05, 0.05, 0.025, 0.025));
}

TEST(HyperParameters, RejectConflictingValues) {
  HyperParameters hyper({});
  hyper.set("optimizer.momentum", 0.8, "one");
  hyper.set("optimizer.momentum", 0.8, "two");
  EXPECT_THAT(
      [&] { hyper.set("optimizer.momentum", 0.7, "three"); },
      ::testing::ThrowsMessage<Error>(::testing::AllOf(HasSubstr("'one'"), HasSubstr("'three'"))));
  EXPECT_EQ(hyper.at("optimizer.momentum"), 0.9);
  hyper.apply();
  EXPECT_EQ(hyper.at("optimizer.momentum"), 0.8);
  EXPECT_THROW(hyper.set("optimizer.momentum", 1.5, "one"), Error);
  EXPECT_THAT([&] { hyper.set("optimizer.momentun", 0.5, "one"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("did you mean 'optimizer.momentum'")));
}

TEST(StepBoundary, SavesTensorsOfCallbacks) {
  struct Keeper final : Callback, SavesTensors {
    at::Tensor kept = at::zeros({2});
    void after_step(const TrainState& s) override {
      kept.fill_(static_cast<double>(s.at.step));
      if (s.is_last) s.save_checkpoint();
    }
    NamedTensors save_tensors() const override { return {{"kept", kept}}; }
    void load_tensors(const TrainState&, const NamedTensors& tensors) override {
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
  EXPECT_TRUE(tensors_equal(keeper.kept, at::full({2}, 15.0)));
}

}  // namespace
}  // namespace millrace::testing
