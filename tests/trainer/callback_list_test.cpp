// Metrics and state that callbacks may publish and save; errors name the callback.
#include "millrace/trainer/callback_list.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/fake_training.h"
#include "tests/support/log.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// A callback for which the test sets the declared metrics, the published metric, the state and the
/// exception.
struct Talker final : Callback, PublishesMetrics, ReadsMetrics, SavesState {
  std::vector<std::string> named, watched;
  std::string published;
  nlohmann::json state;
  std::string throws_in;

  std::vector<std::string> publishes() const override {
    if (throws_in == "publishes") throw std::out_of_range("no names");
    return named;
  }
  std::vector<std::string> watches() const override {
    if (throws_in == "watches") throw std::out_of_range("no names");
    return watched;
  }
  void after_step(const TrainState& s) override {
    if (!published.empty()) s.publish({{published, 1}});
    if (!state.is_null()) s.save_checkpoint();
  }
  void on_scalars(const TrainState&, const Moment&, const Scalars&) override {}
  nlohmann::json save_state() const override { return state; }
  void load_state(const TrainState&, const nlohmann::json&) override {}
};

/// Trains with these callbacks as if a plug-in had registered them. Returns the error message;
/// empty if none.
std::string failure_with(const std::vector<Talker>& talkers) {
  const Scratch scratch;
  LineDetector model;
  CallbackList list;
  return message_of<std::exception>([&] {
    for (std::size_t i = 0; i < talkers.size(); ++i)
      list.add(fmt::format("mine{}", i), std::make_unique<Talker>(talkers[i]), std::nullopt,
               "mine.so");
    list.check_metrics();
    Trainer(fake_plan(model, scratch / "run"), std::move(list)).run();
  });
}

Talker naming(std::vector<std::string> names, std::string published = "") {
  Talker talker;
  talker.named = std::move(names);
  talker.published = std::move(published);
  return talker;
}

TEST(CallbackList, ReportsCallbackThatThrowsInDeclaration) {
  for (const std::string hook : {"publishes", "watches"}) {
    Talker talker;
    talker.throws_in = hook;
    EXPECT_EQ(failure_with({talker}),
              "callback 'mine0' of mine.so failed in " + hook + ": no names");
  }
}

TEST(CallbackList, RejectsTrainerMetricNames) {
  EXPECT_THAT(failure_with({naming({"loss"})}),
              AllOf(HasSubstr("callback 'mine0' of mine.so: publishes()"), HasSubstr("'loss'")));
  for (const auto* name : {"step", "time", "lr", "bad_steps", "optimizer.momentum", "fit"})
    EXPECT_THAT(failure_with({naming({"*"}, name)}),
                AllOf(HasSubstr("callback 'mine0' of mine.so failed in after_step: "),
                      HasSubstr(fmt::format("'{}'", name))));
  EXPECT_EQ(failure_with({naming({"my/loss"}, "my/loss")}), "");
}

TEST(CallbackList, RejectsUndeclaredMetrics) {
  EXPECT_THAT(failure_with({naming({"score", "parts/*"}, "scores")}),
              AllOf(HasSubstr("callback 'mine0' of mine.so failed in after_step: "),
                    HasSubstr("'scores'"), HasSubstr("score, parts/*")));
  EXPECT_THAT(failure_with({naming({}, "score")}),
              AllOf(HasSubstr("'score'"), HasSubstr("publishes()")));
  EXPECT_EQ(failure_with({naming({"score", "parts/*"}, "parts/wheel")}), "");
}

TEST(CallbackList, RejectsMetricDeclaredTwice) {
  EXPECT_THAT(
      failure_with({naming({"a", "score"}), naming({"score"})}),
      AllOf(HasSubstr("callbacks.mine0"), HasSubstr("callbacks.mine1"), HasSubstr("'score'")));
}

TEST(CallbackList, RejectsStateThatIsNotUtf8) {
  Talker talker;
  talker.state = "\xff\x01";
  EXPECT_THAT(failure_with({talker}),
              HasSubstr("callback 'mine0' of mine.so failed in save_state: "));
  talker.state = 3;
  EXPECT_EQ(failure_with({talker}), "");
}

TEST(CallbackList, PassesTrainStateToLoadState) {
  struct Loader final : Callback, SavesState {
    std::int64_t& step;
    std::filesystem::path& folder;
    Loader(std::int64_t& s, std::filesystem::path& f) : step(s), folder(f) {}
    void after_step(const TrainState& s) override {
      if (s.at.step == 3) s.save_checkpoint();
    }
    nlohmann::json save_state() const override { return {{"kept", 1.5}}; }
    void load_state(const TrainState& s, const nlohmann::json& saved) override {
      EXPECT_EQ(saved, save_state());
      step = s.at.step;
      folder = s.folder;
    }
  };
  const Scratch scratch;
  std::int64_t step = 0;
  std::filesystem::path folder;
  for (int i = 0; i < 2; ++i) {
    LineDetector model;
    CallbackList list;
    list.add("loader", std::make_unique<Loader>(step, folder));
    const auto plan = fake_plan(model, scratch / "run");
    Trainer trainer(plan, std::move(list));
    if (i == 1) trainer.resume(*newest_checkpoint(scratch / "run" / "checkpoints"));
    trainer.run();
  }
  EXPECT_EQ(step, 3);
  EXPECT_EQ(folder, scratch / "run");
}

TEST(CallbackList, LogsErrorsThatAreNotRethrown) {
  struct Faulty final : Callback {
    void after_step(const TrainState&) override { throw Error("first"); }
    void after_train(const TrainState&) override { throw Error("second"); }
  };
  const Scratch scratch;
  Log log;
  LineDetector model;
  CallbackList list;
  list.add("a", std::make_unique<Faulty>());
  list.add("b", std::make_unique<Faulty>());
  EXPECT_THAT([&] { Trainer(fake_plan(model, scratch / "run"), std::move(list)).run(); },
              ThrowsMessage<Error>("callback 'a' failed in after_step: first"));
  const auto text = log.take();
  EXPECT_THAT(text, ::testing::Not(HasSubstr("'a' failed in after_step")));
  for (const auto* other : {"'b' failed in after_step: first", "'a' failed in after_train: second",
                            "'b' failed in after_train: second"})
    EXPECT_THAT(text, HasSubstr(other));
}

}  // namespace
}  // namespace millrace::testing
