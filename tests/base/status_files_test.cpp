// Status files are read for one launch of a run only. A process whose id was reused is recognised.
#include "millrace/base/disk/status_files.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "millrace/base/process/process_identity.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace::testing {
namespace {

using nlohmann::ordered_json;

class StatusFiles : public ::testing::Test {
 protected:
  StatusFiles() { std::filesystem::create_directory(status_folder(run_.path())); }

  void write(std::int64_t rank, const std::string& text) const {
    std::ofstream(status_file(run_.path(), rank)) << text;
  }
  void write(std::int64_t start, std::int64_t rank, std::int64_t ranks) const {
    write(rank, ordered_json{{"format", 1},
                             {"start", start},
                             {"rank", rank},
                             {"ranks", ranks},
                             {"written", 1.5},
                             {"status", ordered_json::object()}}
                    .dump());
  }

  const Scratch run_;
};

TEST_F(StatusFiles, AreReadForGivenLaunchOnly) {
  write(/*start=*/2, 0, 2);
  write(2, 1, 2);
  write(/*start=*/1, 2, 4);  // an earlier launch with more ranks
  write(1, 3, 4);
  const auto files = read_status_files(run_.path(), 2);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1]["rank"], 1);
  EXPECT_TRUE(read_status_files(run_.path(), 3).empty());
}

TEST_F(StatusFiles, AreNullIfMissingOrDamaged) {
  EXPECT_TRUE(read_status_files(run_ / "none", 1).empty());
  write(1, 2, 4);
  write(0, R"({"format": 1, "start": 1, "rank": 0)");
  write(1, R"({"format": 1, "start": 1, "rank": 1, "ranks": "x"})");
  const auto files = read_status_files(run_.path(), 1);
  ASSERT_EQ(files.size(), 4U);
  EXPECT_TRUE(files[0].is_null() && files[1].is_null() && files[3].is_null());
  EXPECT_EQ(files[2]["rank"], 2);
}

TEST_F(StatusFiles, IgnoreRanksBeyondWorldSize) {
  write(1, 5, 2);
  write(1, 1, std::int64_t{1} << 40);
  EXPECT_TRUE(read_status_files(run_.path(), 1).empty());
}

TEST(ProcessIdentity, DistinguishesReusedProcessIds) {
  const auto mine = own_identity();
  EXPECT_EQ(is_running(mine), true);
  auto other = mine;
  other.start += 1;  // the same process id, given to a later process
  EXPECT_EQ(is_running(other), false);
  other.system = "another";
  EXPECT_EQ(is_running(other), std::nullopt);
}

TEST(ProcessIdentity, TreatsZombiesAsEnded) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto child = ::fork();
  if (child == 0) {
    const auto start = own_identity().start;
    if (::write(ends[1], &start, sizeof start) == sizeof start) ::pause();
    ::_exit(1);
  }
  auto identity = own_identity();
  identity.number = child;
  ASSERT_EQ(::read(ends[0], &identity.start, sizeof identity.start), 8);
  EXPECT_EQ(is_running(identity), true);
  ::kill(child, SIGKILL);
  EXPECT_TRUE(wait_until([&] { return is_running(identity) == false; })) << "a zombie";
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(is_running(identity), false);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace millrace::testing
