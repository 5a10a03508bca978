#include "millrace/base/file_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

TEST(FileLock, IsHeldByOneAtATime) {
  const testing::Scratch scratch;
  std::filesystem::create_directory(scratch / "folder");
  for (const auto& path : {scratch / "file", scratch / "folder"}) {
    std::optional<FileLock> held(path);
    EXPECT_EQ(testing::message_of([&] { FileLock{path}; }),
              path.string() + ": another process is writing it");
    held.reset();
    EXPECT_EQ(testing::message_of([&] { FileLock{path}; }), "");
  }
}

TEST(FileLock, GoesWithAProcessThatIsKilled) {
  const testing::Scratch scratch;
  int held[2];
  ASSERT_EQ(::pipe(held), 0);
  const auto child = ::fork();
  if (child == 0) {
    const FileLock lock(scratch / "file");
    if (::write(held[1], "x", 1) == 1) ::pause();
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(held[0], &byte, 1), 1);
  EXPECT_THAT(testing::message_of([&] { FileLock(scratch / "file"); }),
              HasSubstr("another process"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(testing::message_of([&] { FileLock(scratch / "file"); }), "");
  for (const int end : held) ::close(end);
}

TEST(FileLock, SaysWhatCannotBeLocked) {
  EXPECT_EQ(testing::message_of([] { FileLock("/nowhere/file"); }),
            "/nowhere/file: cannot be locked: No such file or directory");
}

}  // namespace
}  // namespace millrace
