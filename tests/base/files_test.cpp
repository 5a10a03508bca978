#include "millrace/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/base/process/stop_signals.h"
#include "tests/support/scratch.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

void replace(const fs::path& file, std::string_view bytes) {
  replace_file(file, std::span(&bytes, 1));
}

/// Tests that run for both functions that write a file.
class Files : public ::testing::TestWithParam<void (*)(const fs::path&, std::string_view)> {
 protected:
  fs::path in_folder(const std::string& name) const { return scratch_ / name; }
  void write(const fs::path& file, std::string_view bytes) const { GetParam()(file, bytes); }
  std::vector<std::string> parts() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path()))
      if (entry.path().extension() == ".part") found.push_back(entry.path());
    return found;
  }

 private:
  testing::Scratch scratch_;
};

TEST_P(Files, ReplacesTargetOfSymbolicLink) {
  fs::create_directory(in_folder("disk"));
  write(in_folder("disk/a"), "old");
  fs::create_hard_link(in_folder("disk/a"), in_folder("disk/same"));
  fs::create_symlink("disk/a", in_folder("near"));
  fs::create_symlink(in_folder("near"), in_folder("far"));  // absolute, to another link
  write(in_folder("far"), "new");
  for (const auto* link : {"near", "far"}) EXPECT_TRUE(fs::is_symlink(in_folder(link)));
  EXPECT_EQ(read_file(in_folder("disk/a")), "new");
  EXPECT_EQ(read_file(in_folder("disk/same")), "old") << "the old file must not be overwritten";
  EXPECT_THAT(parts(), IsEmpty());
}

TEST_P(Files, CreatesTargetOfDanglingLink) {
  fs::create_directory(in_folder("disk"));
  fs::create_symlink("disk/a", in_folder("link"));
  write(in_folder("link"), "new");
  EXPECT_TRUE(fs::is_symlink(in_folder("link")));
  EXPECT_EQ(read_file(in_folder("disk/a")), "new");
  fs::create_symlink("nowhere/a", in_folder("lost"));
  EXPECT_THAT([&] { write(in_folder("lost"), "new"); },
              ThrowsMessage<Error>(HasSubstr("No such file or directory")));
}

TEST_P(Files, RejectsCircularLinks) {
  fs::create_symlink("b", in_folder("a"));
  fs::create_symlink("a", in_folder("b"));
  EXPECT_THAT([&] { write(in_folder("a"), "new"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/a: "), HasSubstr("Too many levels"))));
  EXPECT_TRUE(fs::is_symlink(in_folder("a")));
}

TEST_P(Files, WritesToPipe) {
  ASSERT_EQ(::mkfifo(in_folder("pipe").c_str(), 0600), 0);
  auto reader = std::async(std::launch::async,
                           [&] { return read_file(in_folder("pipe"), {.pipes = Pipes::taken}); });
  write(in_folder("pipe"), "through");
  EXPECT_EQ(reader.get(), "through");
  EXPECT_TRUE(fs::is_fifo(in_folder("pipe")));
  EXPECT_THAT(parts(), IsEmpty());
}

TEST_P(Files, WritesToDevice) {
  write("/dev/null", "nothing");
  fs::create_symlink("/dev/null", in_folder("link"));
  write(in_folder("link"), "nothing");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT([&] { write("/dev/full", "no room"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/dev/full: "), HasSubstr("No space left"))));
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST_P(Files, WritesToDescriptorPath) {
  const auto file = in_folder("open");
  const int open = ::open(file.c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_GE(open, 0);
  fs::remove(file);  // its link in /proc/self/fd is now dangling
  write("/proc/self/fd/" + std::to_string(open), "kept");
  std::string bytes(4, ' ');
  EXPECT_EQ(::pread(open, bytes.data(), bytes.size(), 0), 4);
  EXPECT_EQ(bytes, "kept");
  ::close(open);
  EXPECT_TRUE(fs::is_empty(file.parent_path()));
}

TEST_P(Files, RejectsFolder) {
  fs::create_directory(in_folder("folder"));
  EXPECT_THAT([&] { write(in_folder("folder"), "new"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("/folder: "), HasSubstr("Is a directory"))));
}

TEST_P(Files, KeepsOldFileIfWriteFails) {
  write(in_folder("a"), "old");
  const auto child = ::fork();
  if (child == 0) {
    survive_file_size_limit();
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write(in_folder("a"), std::string(2000, 'x'));
    } catch (const Error& problem) {
      ::_exit(std::string(problem.what()).find("File too large") == std::string::npos ? 1 : 2);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_EQ(read_file(in_folder("a")), "old");
  EXPECT_THAT(parts(), IsEmpty());
}

TEST(ReadFile, RejectsPipesDevicesAndFolders) {
  const testing::Scratch scratch;
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& name : {pipe.string(), std::string("/dev/zero"), scratch.path().string()})
    for (const std::function<void()>& read : {std::function<void()>([&] { read_file(name); }),
                                              {[&] { map_file(name); }},
                                              {[&] { InputFile{name}; }}})
      EXPECT_THAT(read, ThrowsMessage<Error>(HasSubstr(name)));
}

TEST(ReadFile, RejectsPipeWithoutWriter) {
  const testing::Scratch scratch;
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT([&] { read_file(pipe, {.pipes = Pipes::taken}); },
              ThrowsMessage<Error>(HasSubstr(pipe.string())));
}

TEST(ReadFile, WaitsForSlowPipeWriter) {
  const testing::Scratch scratch;
  const auto pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  auto reader =
      std::async(std::launch::async, [&] { return read_file(pipe, {.pipes = Pipes::taken}); });
  UniqueFd out(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
  std::this_thread::sleep_for(
      std::chrono::seconds(11));  // longer than the timeout without a writer
  write_all(out, "late", pipe);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  write_all(out, ", but whole", pipe);
  out = UniqueFd();
  EXPECT_EQ(reader.get(), "late, but whole");
}

INSTANTIATE_TEST_SUITE_P(
    , Files,
    ::testing::Values(
        static_cast<void (*)(const fs::path&, std::string_view)>(write_file_atomically), replace),
    [](const auto& way) { return way.index == 0 ? "WriteFileAtomically" : "ReplaceFile"; });

TEST(FullDisk, IsReportedWithRequiredBytes) {
  const std::string bytes(3 << 20, 'x');
  EXPECT_THAT(testing::message_of([&] { write_file_atomically("/dev/full", bytes); }),
              ::testing::AllOf(::testing::HasSubstr("/dev/full"), ::testing::HasSubstr("3 MiB")));
}

TEST(FileLock, IsExclusive) {
  const testing::Scratch scratch;
  std::filesystem::create_directory(scratch / "folder");
  for (const auto& path : {scratch / "file", scratch / "folder"}) {
    std::optional<FileLock> held(path);
    EXPECT_THAT(testing::message_of([&] { FileLock{path}; }),
                ::testing::AllOf(::testing::StartsWith(path.string() + ": "),
                                 ::testing::HasSubstr(" " + std::to_string(::getpid()) + " ")));
    held.reset();
    EXPECT_EQ(testing::message_of([&] { FileLock{path}; }), "");
  }
}

TEST(FileLock, IsReleasedWhenProcessIsKilled) {
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
              HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(testing::message_of([&] { FileLock(scratch / "file"); }), "");
  for (const int end : held) ::close(end);
}

TEST(FileLock, ReportsPathThatCannotBeLocked) {
  EXPECT_THAT(testing::message_of([] { FileLock("/nowhere/file"); }),
              AllOf(HasSubstr("/nowhere/file: "), HasSubstr("No such file")));
}

}  // namespace
}  // namespace millrace
