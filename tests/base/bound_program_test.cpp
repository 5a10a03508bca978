// Programs that end with their parent, and how they ended.
#include "millrace/base/process/bound_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>

#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

UniqueFd opened(const std::filesystem::path& file) {
  return UniqueFd(::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
}

class BoundPrograms : public ::testing::Test {
 protected:
  BoundProgram shell(const std::string& command) const {
    return {{"/bin/sh", "-c", command}, {out_, err_}};
  }
  std::string out() const { return read_file(folder_ / "out"); }

  Scratch folder_;
  UniqueFd out_ = opened(folder_ / "out"), err_ = opened(folder_ / "err");
};

TEST_F(BoundPrograms, SayHowTheyEnded) {
  auto good = shell("cat; echo said; echo wrong >&2");
  good.wait();
  EXPECT_EQ(good.failure(), "");
  EXPECT_EQ(out(), "said\n");
  EXPECT_EQ(read_file(folder_ / "err"), "wrong\n");
  auto bad = shell("exit 3");
  bad.wait();
  EXPECT_EQ(bad.exit_code(), 3);
  EXPECT_EQ(bad.failure(), "exit code 3");
  auto killed = shell("sleep 1000");
  EXPECT_FALSE(killed.has_ended());
  killed.signal(SIGKILL);
  killed.wait();
  EXPECT_EQ(killed.exit_code(), -1);
  EXPECT_EQ(killed.failure(), "signal 9 (Killed)");
  killed.signal(SIGTERM);  // nobody is there
}

TEST_F(BoundPrograms, WhatCannotBeExecutedSaysSo) {
  BoundProgram none({"/nowhere/program"}, {out_, err_});
  none.wait();
  EXPECT_EQ(none.exit_code(), 127);
  EXPECT_THAT(read_file(folder_ / "err"),
              HasSubstr("/nowhere/program: cannot be executed: No such file or directory"));
}

// Of whoever kills the parent, the child hears from the system.
TEST_F(BoundPrograms, AreKilledWithTheirParent) {
  const pid_t parent = ::fork();
  if (parent == 0) {
    const auto child = shell("echo $$; exec sleep 1000");
    for (;;) ::pause();
  }
  ASSERT_TRUE(comes_to([&] { return out().ends_with('\n'); }));
  const pid_t child = std::stoi(out());
  EXPECT_EQ(::getpgid(child), child);
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  // Gone, or a zombie of whoever takes in orphans here.
  EXPECT_TRUE(comes_to([&] {
    const auto status = "/proc/" + std::to_string(child) + "/status";
    try {
      return read_file(status).find("State:\tZ") != std::string::npos;
    } catch (const Error&) {
      return true;
    }
  }));
}

}  // namespace
}  // namespace millrace::testing
