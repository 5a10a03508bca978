// Callbacks that watch whether a metric improves.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "millrace/callbacks/common/watched_metric.h"
#include "tests/callbacks/series.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

MILLRACE_REGISTER(register_callback<PublishSeries>("series", "publishes given numbers"));

Training watched_training(const std::filesystem::path& folder, const std::string& values,
                          const std::string& toml) {
  return {
      .folder = folder,
      .declared = {{"series", "values = " + values}, {"stop_early", "metric = 'score'\n" + toml}}};
}

TEST(StopEarly, EndsWithCheckpointAfterPatience) {
  const Scratch scratch;
  const auto run =
      watched_training(scratch / "run", "[0.1, 0.3, 0.3, 0.2, 0.29, 0.5]", "patience = 2");
  const auto end = run();
  EXPECT_EQ(end.at.step, 5);
  EXPECT_EQ(end.stop_reason, "'stop_early' (no score better than 0.3, of step 2, in the last 3)");
  EXPECT_FALSE(end.signalled);
  EXPECT_EQ(newest_checkpoint(scratch / "run" / "checkpoints")->at.step, 5);
  EXPECT_EQ(run().at.step, 5) << "resumed";
}

TEST(StopEarly, ResetsPatienceAfterImprovement) {
  const struct {
    const char *values, *toml;
    std::int64_t end;
  } cases[] = {{"[1, 2, 2, 3, 3, 4, 4, 5, 5, 6]", "patience = 1", 15},
               {"[1, 2, 2, 2.1, 3]", "patience = 1\nmin_delta = 0.5", 4},
               {"[3, 2, 1, 1]", "patience = 0\nbetter = 'lower'", 4},
               {"[999, 999]", "patience = 1", 2}};
  for (const auto& [values, toml, end] : cases) {
    const Scratch scratch;
    EXPECT_EQ(watched_training(scratch / "run", values, toml)().at.step, end) << values;
  }
}

/// Returns the learning rate factor after each value.
std::vector<double> factors(const std::string& values, const std::string& toml) {
  const Scratch scratch;
  std::vector<double> seen;
  Training{.folder = scratch / "run",
           .declared = {{"series", "values = " + values},
                        {"reduce_on_plateau", "metric = 'score'\n" + toml}},
           .before_step =
               [&](const TrainState& s) {
                 if (s.at.step > 0) seen.push_back(s.hyper.at("lr_factor"));
               },
           .adjust = [](TrainPlan& plan) { plan.train.epochs = 5; }}();
  return seen;
}

TEST(WatchedMetric, IgnoresUndefinedCocoScores) {
  for (const std::string name : {"bbox/APl", "ema/segm/AP", "loss"}) {
    WatchedMetric metric({.metric = name});
    EXPECT_EQ(metric.in({{name, -1}}).has_value(), name == "loss") << name;
    EXPECT_EQ(metric.in({{name, 0.25}}), 0.25) << name;
    EXPECT_EQ(metric.in({{name, 0}}), 0) << name;
  }
}

TEST(ReduceOnPlateau, MatchesTorch) {
  // torch 2.11: ReduceLROnPlateau(SGD(lr=1), mode="max", factor=0.5, patience=1, threshold=0.004,
  // threshold_mode="abs", cooldown=2, min_lr=0.2, eps=0).
  const auto seen = factors(
      "[0.1, 0.12, 0.12, 0.125, 0.11, 0.13, 0.13, 0.13, 0.129, 0.131, 0.14, 0.14, 0.14, 0.14, "
      "0.14, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]",
      "factor = 0.5\npatience = 1\nmin_delta = 0.004\ncooldown = 2\nmin = 0.2");
  EXPECT_THAT(std::vector(seen.begin(), seen.begin() + 22),
              ElementsAre(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25,
                          0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2, 0.2));
}

TEST(ReduceOnPlateau, CountsNanAsNoImprovement) {
  EXPECT_THAT(factors("[1, 999, 0.9, 0.8]", "better = 'lower'\npatience = 0").at(1),
              ::testing::DoubleEq(0.1));
}

TEST(ReduceOnPlateau, LoadsStateOfOlderCheckpoints) {
  LineDetector model;
  TrainState state(model, {});
  const auto callback =
      callbacks()
          .at("reduce_on_plateau")
          .create(parse_config("metric = 'score'", "test.toml"), "reduce_on_plateau");
  auto& saver = dynamic_cast<SavesState&>(*callback);
  const nlohmann::json stall = {{"bad", 2}, {"best", 0.5}, {"best_step", 4}};
  saver.load_state(state, {{"stall", stall.dump()}, {"cooldown", 1}});
  EXPECT_EQ(saver.save_state(), (nlohmann::json{{"stall", stall}, {"cooldown", 1}}));
}

TEST(ReduceOnPlateau, RejectsUnknownParameter) {
  EXPECT_THAT([] { factors("[1]", "parameter = 'lr'"); },
              ThrowsMessage<ConfigError>(HasSubstr("parameter = \"lr\" ")));
}

TEST(Metrics, AreRejectedIfNeverPublished) {
  for (const auto* watcher : {"stop_early", "keep_best", "reduce_on_plateau"})
    EXPECT_THAT(
        [&] {
          made({{watcher, "metric = 'bbox/AB'"}, {"evaluate", ""}});
        },
        ThrowsMessage<ConfigError>(
            AllOf(HasSubstr(std::string("callbacks.") + watcher + ": no callback "),
                  HasSubstr("'bbox/AB'"), HasSubstr("'bbox/AP'"))));
  EXPECT_THAT(
      [] {
        made({{"checkpoint", "only_if = 'bbox/AR10 > 0.3'"}});
      },
      ThrowsMessage<ConfigError>(
          AllOf(HasSubstr("callbacks.checkpoint: no callback "), HasSubstr("'bbox/AR10'"))));
  for (const auto* metric : {"loss", "loss_rpn_box_reg"})  // metrics of every step
    EXPECT_THAT(
        [&] {
          made({{"stop_early", std::string("metric = '") + metric + "'"}, {"evaluate", ""}});
        },
        ThrowsMessage<ConfigError>(AllOf(HasSubstr("callbacks.stop_early"), HasSubstr(metric),
                                         HasSubstr("validation_loss"))));
  made({{"stop_early", "metric = 'val/loss_rpn_box_reg'"}, {"validation_loss", ""}});
  made({{"checkpoint", "only_if = 'loss < 3'"}});
}

TEST(Metrics, AreReportedAtEndIfMissing) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"evaluate", ""},
                        {"keep_best", "metric = 'segm/AP'"},
                        {"checkpoint", "only_if = 'segm/AP50 > 0.1'"},
                        {"stop_early", "metric = 'bbox/AP'"}}}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("callbacks.keep_best did nothing: 'segm/AP'"));
  EXPECT_THAT(text, HasSubstr("callbacks.checkpoint did nothing: 'segm/AP50'"));
  EXPECT_THAT(text, Not(HasSubstr("callbacks.stop_early")));
}

}  // namespace
}  // namespace millrace::testing
