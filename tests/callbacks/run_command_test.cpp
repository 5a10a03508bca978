#include <gmock/gmock.h>
#include <signal.h>

#include <csignal>

#include "tests/callbacks/training.h"
#include "tests/support/log.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

Training commanding_training(const std::filesystem::path& folder, const std::string& toml) {
  return {.folder = folder, .declared = {{"evaluate", ""}, {"run_command", toml}}};
}

/// Expects that this process has no child processes, not even zombies.
void expect_no_children() {
  errno = 0;
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(RunCommand, PassesStateInEnvironment) {
  const Scratch scratch;
  Log log;
  commanding_training(
      scratch / "run",
      "command = 'echo \"at $MILLRACE_STEP, $MILLRACE_EPOCH\"; echo \"$MILLRACE_SCALARS\" > "
      "\"$MILLRACE_RUN_FOLDER/scalars-$MILLRACE_STEP\"'")();
  const auto text = log.take();
  EXPECT_THAT(text, AllOf(HasSubstr("callback 'run_command': at 5, 1"), HasSubstr("at 15, 3")));
  const auto scalars = nlohmann::json::parse(read_file(scratch / "run" / "scalars-10"));
  EXPECT_TRUE(scalars.contains("bbox/AP") && scalars.contains("loss") && scalars.contains("lr"));
  expect_no_children();
}

TEST(RunCommand, CountsFailuresOrEndsTraining) {
  const Scratch scratch;
  {
    Log log;
    commanding_training(scratch / "a", "command = 'echo oh; exit 3'")();
    const auto text = log.take();
    EXPECT_THAT(text, AllOf(HasSubstr("callback 'run_command': oh"), HasSubstr("exit code 3"),
                            HasSubstr("1 failure so far"), HasSubstr("3 failures so far")));
  }
  EXPECT_THAT(
      [&] { commanding_training(scratch / "b", "command = 'kill -9 $$'\nmust_succeed = true")(); },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("callback 'run_command' failed"), HasSubstr("signal 9"))));
  EXPECT_THAT([&] { commanding_training(scratch / "c", "")(); },
              ThrowsMessage<ConfigError>(HasSubstr("command is required")));
  expect_no_children();
}

TEST(RunCommand, SavesCheckpointBeforeEndingTraining) {
  for (const std::string wait : {"true", "false"}) {
    const Scratch scratch;
    auto run = commanding_training(
        scratch / "run",
        "every = '7 steps'\nmust_succeed = true\nwait = " + wait + "\ncommand = 'exit 3'");
    run.declared.push_back({"checkpoint", "every = '4 steps'"});
    run.before_step = [&](const TrainState& s) {
      if (s.at.step == 7) ::usleep(50'000);
    };
    EXPECT_THROW(run(), Error);
    EXPECT_EQ(newest_checkpoint(run.folder / "checkpoints")->at.step, wait == "true" ? 7 : 8);
    run.declared.erase(run.declared.begin() + 1);
    EXPECT_EQ(run().at.step, 15) << "resumed";
  }
}

TEST(RunCommand, KillsSlowCommand) {
  const Scratch scratch;
  Log log;
  commanding_training(
      scratch / "run",
      "every = '9 epochs'\ncommand = 'sleep 100 & wait'\ntime_limit = '0.05 seconds'")();
  const auto text = log.take();
  EXPECT_THAT(text, HasSubstr("longer than 0.1 s"));
  expect_no_children();
}

TEST(RunCommand, RunsDuringTraining) {
  const Scratch scratch;
  Log log;
  // The command waits for a file that a later step writes.
  auto run = commanding_training(scratch / "run",
                                 "wait = false\nonly_if = 'step <= 5'\ncommand = 'while [ ! -e "
                                 "$MILLRACE_RUN_FOLDER/go ]; do sleep 0.01; done; echo gone'");
  run.before_step = [&](const TrainState& s) {
    if (s.at.step == 8) write_file_atomically(scratch / "run" / "go", "");
  };
  run();
  const auto text = log.take();
  EXPECT_THAT(text, AllOf(HasSubstr("gone"), Not(HasSubstr("failed"))));
  expect_no_children();
}

TEST(RunCommand, IsKilledWhenTrainingEnds) {
  for (const bool by_signal : {true, false}) {
    const Scratch scratch;
    auto run = commanding_training(scratch / "run", "wait = false\ncommand = 'sleep 100'");
    run.before_step = [&](const TrainState& s) {
      if (s.at.step != 7) return;
      if (!by_signal) throw Error("broke");
      std::raise(SIGTERM);
    };
    if (by_signal)
      EXPECT_TRUE(run().signalled);
    else
      EXPECT_THROW(run(), Error);
    expect_no_children();
  }
}

}  // namespace
}  // namespace millrace::testing
