#include <gmock/gmock.h>

#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Training watched_training(const std::filesystem::path& folder, const std::string& values,
                          const std::string& toml) {
  return {
      .folder = folder,
      .declared = {{"series", "values = " + values}, {"stop_early", "metric = 'score'\n" + toml}}};
}

TEST(StopEarly, EndsWithACheckpointWherePatienceEnds) {
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

TEST(StopEarly, ForgetsBadValuesAfterOneThatIsBetterByEnough) {
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

TEST(Metrics, ThatNobodyPublishesAreAnErrorBeforeTheRun) {
  for (const auto* watcher : {"stop_early", "keep_best", "reduce_on_plateau"})
    EXPECT_THAT(
        [&] {
          made({{watcher, "metric = 'bbox/AB'"}, {"evaluate", ""}});
        },
        ThrowsMessage<ConfigError>(AllOf(HasSubstr(std::string("callbacks.") + watcher +
                                                   ": no callback of this run publishes 'bbox/AB'"),
                                         HasSubstr("did you mean 'bbox/AP'"))));
  EXPECT_THAT(
      [] {
        made({{"checkpoint", "only_if = 'bbox/AR10 > 0.3'"}});
      },
      ThrowsMessage<ConfigError>(HasSubstr("callbacks.checkpoint: no callback of this run")));
  made({{"stop_early", "metric = 'val/loss_rpn_box_reg'"}, {"validation_loss", ""}});
  made({{"checkpoint", "only_if = 'loss < 3'"}});
}

TEST(Metrics, ThatNeverCameAreToldAtTheEnd) {
  const Scratch scratch;
  Log log;
  Training{.folder = scratch / "run",
           .declared = {{"evaluate", ""},
                        {"keep_best", "metric = 'segm/AP'"},
                        {"checkpoint", "only_if = 'segm/AP50 > 0.1'"},
                        {"stop_early", "metric = 'bbox/AP'"}}}();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("callbacks.keep_best waited for 'segm/AP'"));
  EXPECT_THAT(text, HasSubstr("callbacks.checkpoint waited for 'segm/AP50'"));
  EXPECT_THAT(text, Not(HasSubstr("callbacks.stop_early waited")));
}

}  // namespace
}  // namespace millrace::testing
