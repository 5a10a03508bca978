// A training that stands still is noticed, and what is said names the place.
#include <gmock/gmock.h>

#include <csignal>
#include <thread>

#include "millrace/callbacks/common/stall.h"
#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Scratch;
using testing::Training;

using Time = Activity::Clock::time_point;

/// Asks every second from `from` on, up to `to`; the seconds at which a stall was seen.
std::vector<int> seen_stalls(StallWatch& watch, const Activity::Now& now, int from, int to) {
  std::vector<int> seen;
  for (int s = from; s <= to; ++s)
    if (watch.sees(now, Time(seconds(s)))) seen.push_back(s);
  return seen;
}

Activity::Now moved_at(int second) { return {"works", Time(), Time(seconds(second))}; }

TEST(StallWatch, SeesEachStallOnceAndItsEnd) {
  StallWatch watch(seconds(10));
  EXPECT_THAT(seen_stalls(watch, moved_at(100), 100, 150), ::testing::ElementsAre(110));
  EXPECT_FALSE(watch.ended(moved_at(100)));
  EXPECT_EQ(watch.ended(moved_at(151)), seconds(51));
  EXPECT_FALSE(watch.ended(moved_at(151)));
  EXPECT_THAT(seen_stalls(watch, moved_at(151), 151, 170), ::testing::ElementsAre(161));
}

TEST(StallWatch, TakesNoStoppedProcessForAStall) {
  StallWatch watch(seconds(10));
  EXPECT_THAT(seen_stalls(watch, moved_at(100), 100, 104), ::testing::IsEmpty());
  // SIGSTOP, a debugger or a suspended machine: nobody has looked for an hour.
  EXPECT_THAT(seen_stalls(watch, moved_at(100), 3700, 3720), ::testing::ElementsAre(3710));
}

TEST(StallText, NamesTheStageItsImageAndWhatWaits) {
  Activity activity;
  activity.begin("waits for data");
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

TEST(Activity, ShowsDataOnlyWhileTheyFlow) {
  Activity activity;
  EXPECT_FALSE(activity.data());
  {
    const Activity::Data data(activity, [] { return FlowReport{.skipped = 3}; });
    EXPECT_EQ(activity.data()->skipped, 3);
  }
  EXPECT_FALSE(activity.data());
}

TEST(WatchdogCallback, NamesTheCallbackThatSleeps) {
  const Scratch scratch;
  testing::Log log;
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "after = '0.2 seconds'"}},
           .before_step = [](TrainState& s) {
             if (s.at.step == 4) ::usleep(600'000);
           }}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("warning training has stood still for 0."));
  EXPECT_THAT(text, HasSubstr("rank 0: callback 'test' in before_step, for 0."));
  EXPECT_THAT(text, HasSubstr("training goes on after it stood still for 0."));
}

TEST(WatchdogCallback, IsQuietWhereTheCallbackShowsThatItLives) {
  const Scratch scratch;
  testing::Log log;
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "after = '2 seconds'"}},
           .before_step = [](TrainState& s) {
             for (int i = 0; s.at.step == 4 && i < 30; ++i) {
               ::usleep(100'000);
               s.activity.moves();
             }
           }}();
  EXPECT_THAT(log.take(), Not(HasSubstr("stood still")));
}

/// The validation's images, which are not there for a while.
class LateFlow final : public DataFlow<Batch> {
 public:
  bool is_ready(std::chrono::milliseconds wait) override {
    if (std::chrono::steady_clock::now() - began_ > std::chrono::milliseconds(600)) return true;
    std::this_thread::sleep_for(wait);
    return false;
  }
  std::optional<Delivery<Batch>> next() override { return flow_.next(); }
  std::int64_t epoch_size() const override { return flow_.epoch_size(); }
  FlowReport report() const override { return {}; }

 private:
  testing::FakeFlow flow_{testing::kEpochImages, 0, testing::kEpochImages};
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

TEST(WatchdogCallback, NamesTheEvaluationWhoseDataHang) {
  const Scratch scratch;
  testing::Log log;
  auto validation = testing::fake_validation();
  validation.start = [](Share) { return std::make_unique<LateFlow>(); };
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "after = '0.2 seconds'"}, {"evaluate", "every = '3 epochs'"}},
           .adjust = [&](TrainPlan& plan) { plan.validation = &validation; }}();
  EXPECT_THAT(log.take(), HasSubstr("rank 0: callback 'evaluate' in trigger, for 0."));
}

/// Sleeps in its fifth step.
struct SleepingDetector final : testing::LineDetector {
  Losses losses(const Batch& batch, const StepInfo& step) override {
    if (step.step == 4) ::usleep(500'000);
    return LineDetector::losses(batch, step);
  }
};

TEST(WatchdogCallback, NamesTheStepThatTakesLongAndItsImages) {
  const Scratch scratch;
  testing::Log log;
  Training{.folder = scratch / "run",
           .declared = {{"watchdog", "step_limit = '0.2 seconds'"}},
           .make_model = [] { return std::make_unique<SleepingDetector>(); }}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("a step has taken 0.2 s already"));
  EXPECT_THAT(text, ::testing::ContainsRegex("takes step 5 with images [0-9]+, [0-9]+, for 0"));
  EXPECT_THAT(text, HasSubstr("step 5 took 0.5 s: 0.0 s of waiting for data, 0.5 s of the step "
                              "itself, 0.0 s of callbacks"));
}

TEST(WatchdogCallback, EndsTheProcessWhereItIsAskedTo) {
  const Scratch scratch;
  const Training run{.folder = scratch / "run",
                     .declared = {{"watchdog", "after = '0.2 seconds'\non_stall = 'abort'"},
                                  {"checkpoint", "every = '2 steps'"}},
                     .before_step = [](TrainState& s) {
                       if (s.at.step == 5) ::pause();
                     }};
  const auto status = run.in_child();
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_EQ(newest_checkpoint(scratch / "run" / "checkpoints")->at.step, 4);
}

TEST(WatchdogCallback, RefusesWhatIsNoTime) {
  const auto& watchdog = callbacks().at("watchdog");
  for (const auto* toml :
       {"after = '5 steps'", "after = 'soon'", "after = '0 seconds'", "step_limit = '1 epoch'"}) {
    auto table = parse_config(toml, "a.toml");
    watchdog.complete(table);
    EXPECT_THROW(watchdog.create(table), ConfigError) << toml;
  }
}

}  // namespace
}  // namespace millrace
