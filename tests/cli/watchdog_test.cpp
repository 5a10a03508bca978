// A data stage hangs in a real training run: the watchdog names the stage and the file.
#include <sys/stat.h>

#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

struct Watchdog : Trainer {};

TEST_F(Watchdog, NamesHangingStageAndImage) {
  const auto data = make_data();
  fs::path victim;
  for (const auto& image : fs::directory_iterator(data / "train2017"))
    if (victim.empty() || image.path() < victim) victim = image.path();
  fs::remove(victim);
  ASSERT_EQ(::mkfifo(victim.c_str(), 0600), 0);  // opening it for reading blocks forever

  const auto outcome =
      trainer(on(data, {"run", "--out", in_folder("runs")},
                 kTrainOnly + Words{"train.max_steps=100", "callbacks.watchdog.after='2 seconds'",
                                    "callbacks.watchdog.on_stall='abort'",
                                    "callbacks.checkpoint.every='1 steps'"}));
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("rank 0"), HasSubstr("'decode'"),
                                 HasSubstr(victim.string()), ContainsRegex("[0-9]+ .*'read'")));
}

}  // namespace
}  // namespace millrace::testing
