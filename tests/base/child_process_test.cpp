#include "millrace/base/process/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <map>

#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace {
namespace {

using testing::wait_until;

TEST(ChildProcess, ReportsExitCodeOrSignal) {
  for (const auto& [command, failure] : std::map<std::string, std::string>{
           {"true", ""}, {"exit 3", "exit code 3"}, {"kill -9 $$", "signal 9"}}) {
    ChildProcess child(command, {});
    ASSERT_TRUE(wait_until([&] { return child.has_ended(); })) << command;
    EXPECT_EQ(child.failure(), failure) << command;
  }
}

TEST(ChildProcess, KeepsBeginningOfOutput) {
  ChildProcess child("echo out; echo err >&2; cat; yes | head -c 100000", {});
  ASSERT_TRUE(wait_until([&] { return child.has_ended(); }));
  const auto said = child.output();
  EXPECT_EQ(said.substr(0, 10), "out\nerr\ny\n") << "standard input must be empty";
  EXPECT_EQ(said.size(), std::size_t{64} << 10);
}

TEST(ChildProcess, PassesAddedEnvironmentVariables) {
  ChildProcess child("echo $MILLRACE_STEP $HOME", {"MILLRACE_STEP=7", "HOME=/nowhere"});
  ASSERT_TRUE(wait_until([&] { return child.has_ended(); }));
  EXPECT_EQ(child.output(), "7 /nowhere\n");
}

/// Reads the process id that a command has written to a file.
pid_t read_id(const std::filesystem::path& file) {
  pid_t id = 0;
  std::ifstream(file) >> id;
  return id;
}

TEST(ChildProcess, KillsProcessGroupThatIgnoresSigterm) {
  const testing::Scratch scratch;
  for (const std::string hint : {"", "trap '' TERM; "}) {
    const auto file = scratch.file("id", "");
    ChildProcess child(hint + "sleep 1000 & echo $! > '" + file.string() + "'; wait", {});
    ASSERT_TRUE(wait_until([&] { return read_id(file) > 0; }));
    child.end();
    EXPECT_TRUE(child.has_ended());
    EXPECT_NE(child.failure(), "");
    EXPECT_TRUE(wait_until([&] { return ::kill(read_id(file), 0) != 0 && errno == ESRCH; }))
        << hint;
  }
}

}  // namespace
}  // namespace millrace
