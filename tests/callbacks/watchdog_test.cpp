// A training run that makes no progress is detected, and the message names the cause.
#include <gmock/gmock.h>

#include "millrace/callbacks/common/stall.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

using Time = Clock::time_point;

/// Calls `watch` every second from `from` to `to`; returns the seconds at which it reported a
/// stall.
std::vector<int> reported_stalls(StallWatch& watch, const Activity::Now& now, int from, int to) {
  std::vector<int> seen;
  for (int s = from; s <= to; ++s)
    if (watch.sees(now, Time(seconds(s)))) seen.push_back(s);
  return seen;
}

Activity::Now moved_at(int second) { return {"step", "works", Time(), Time(seconds(second))}; }

TEST(StallWatch, ReportsStallOnceAndItsEnd) {
  StallWatch watch(seconds(10));
  EXPECT_THAT(reported_stalls(watch, moved_at(100), 100, 150), ::testing::ElementsAre(110));
  EXPECT_FALSE(watch.ended(moved_at(100)));
  EXPECT_EQ(watch.ended(moved_at(151)), seconds(51));
  EXPECT_FALSE(watch.ended(moved_at(151)));
  EXPECT_THAT(reported_stalls(watch, moved_at(151), 151, 170), ::testing::ElementsAre(161));
}

TEST(StallWatch, IgnoresStoppedProcess) {
  StallWatch watch(seconds(10));
  EXPECT_THAT(reported_stalls(watch, moved_at(100), 100, 104), ::testing::IsEmpty());
  // The process did not run for an hour, for example because of SIGSTOP, a debugger or a suspended
  // machine.
  EXPECT_THAT(reported_stalls(watch, moved_at(100), 3700, 3720), ::testing::ElementsAre(3710));
}

TEST(StallWatch, ReportsNothingDuringProgress) {
  StallWatch watch(seconds(10));
  for (int s = 0; s < 100; ++s) EXPECT_FALSE(watch.sees(moved_at(s - s % 9), Time(seconds(s))));
}

TEST(StallText, ReportsStageImageAndWaitingItems) {
  Activity activity;
  activity.begin("data", "waits for data");
  const Activity::Data data(activity, [] {
    FlowReport report;
    report.in_work = {{"decode", "photos/7.jpg", 301}};
    report.stages = {{"read", 9, 0, 0}, {"decode", 7, 0, 2}, {"ready", 1, 0, 0}};
    return report;
  });
  EXPECT_EQ(stall_text(0, activity, activity.now().since + seconds(302)),
            "rank 0: waits for data, for 5:02\n"
            "  stage 'decode' has worked on photos/7.jpg for 5:01\n"
            "  waiting: 0 for 'read', 2 for 'decode', 0 batches ready");
}

TEST(Activity, ReportsDataOnlyDuringFlow) {
  Activity activity;
  EXPECT_FALSE(activity.data());
  {
    const Activity::Data data(activity, [] { return FlowReport{.skipped = 3}; });
    EXPECT_EQ(activity.data()->skipped, 3);
  }
  EXPECT_FALSE(activity.data());
}

TEST(Activity, KeepsStartTimeOnProgress) {
  Activity activity;
  activity.begin("step", "works");
  const auto begun = activity.now();
  EXPECT_TRUE(wait_until([&] {
    activity.report_progress();
    return activity.now().last_progress > begun.last_progress;
  }));
  EXPECT_EQ(activity.now().since, begun.since);
}

TEST(WatchdogCallback, ReportsHangingCallback) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "after = '0.2 seconds'"}},
           .before_step = [&](const TrainState& s) {
             if (s.at.step == 4) {
               EXPECT_TRUE(log.wait_for_text("rank 0: callback 'test' in before_step, for "));
             }
           }}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("warning training has stalled"));
  EXPECT_THAT(text, HasSubstr("training continues"));
}

/// Yields validation images only after the log has named the callback that waits for them.
class LateFlow final : public DataFlow<Batch> {
 public:
  explicit LateFlow(const Log& log) : log_(log) {}

  bool is_ready(std::chrono::milliseconds) override {
    return log_.wait_for_text("rank 0: callback 'evaluate' in trigger, for ");
  }
  std::optional<Delivery<Batch>> next() override { return flow_.next(); }
  std::int64_t epoch_size() const override { return flow_.epoch_size(); }
  FlowReport report() const override { return {}; }

 private:
  FakeFlow flow_{kEpochImages, 0, kEpochImages};
  const Log& log_;
};

TEST(WatchdogCallback, ReportsEvaluationWaitingForData) {
  const Scratch scratch;
  Log log;
  auto validation = fake_validation();
  validation.start = [&](Share) { return std::make_unique<LateFlow>(log); };
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "after = '0.2 seconds'"}, {"evaluate", "every = '3 epochs'"}},
           .adjust = [&](TrainPlan& plan) { plan.validation = &validation; }}();
  EXPECT_THAT(log.take(), HasSubstr("training continues"));
}

/// Finishes its fifth step only after the log has reported that the step is slow.
struct SlowDetector final : LineDetector {
  explicit SlowDetector(const Log& to_watch) : log(to_watch) {}
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    if (step.step == 4) {
      EXPECT_TRUE(log.wait_for_text("takes step 5 with images "));
    }
    return LineDetector::compute_losses(batch, step);
  }
  const Log& log;
};

TEST(WatchdogCallback, ReportsSlowStepAndItsImages) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "step_limit = '0.2 seconds'"}},
           .make_model = [&] { return std::make_unique<SlowDetector>(log); }}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("warning a step has "));
  EXPECT_THAT(text, ::testing::ContainsRegex("takes step 5 with images [0-9]+, [0-9]+, for "));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("step 5 took .*: .* data, .* step itself, .* callbacks"));
}

TEST(WatchdogCallback, EndsProcessIfConfigured) {
  const Scratch scratch;
  const Training run{.folder = scratch / "run",
                     .declared = {{"watchdog", "after = '3 seconds'\non_stall = 'abort'"},
                                  {"checkpoint", "every = '2 steps'"}},
                     .before_step = [](const TrainState& s) {
                       if (s.at.step == 5) ::pause();
                     }};
  const auto status = run.in_child();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(newest_checkpoint(scratch / "run" / "checkpoints")->at.step, 4);
}

TEST(WatchdogCallback, RejectsInvalidTimes) {
  const auto& watchdog = callbacks().at("watchdog");
  for (const auto* toml :
       {"after = '5 steps'", "after = 'soon'", "after = '0 seconds'", "step_limit = '1 epoch'"}) {
    auto table = parse_config(toml, "a.toml");
    watchdog.complete(table);
    EXPECT_THROW(watchdog.create(table, "watchdog"), ConfigError) << toml;
  }
}

}  // namespace
}  // namespace millrace::testing
