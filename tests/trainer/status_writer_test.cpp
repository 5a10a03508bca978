// A rank updates its status file, and a write error does not end the run.
#include "millrace/trainer/status/status_writer.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "millrace/base/disk/status_files.h"
#include "tests/support/log.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class StatusWriting : public ::testing::Test {
 protected:
  nlohmann::ordered_json file(std::int64_t start = 1) const {
    return read_status_file(run_.path(), start, 0);
  }
  bool wait_for_status_after(double written) const {
    return wait_until([&] {
      const auto now = file();
      return !now.is_null() && now["written"] > written;
    });
  }

  const Scratch run_;
  Log log_;
  Activity activity_;
};

TEST_F(StatusWriting, FollowsTraining) {
  StatusWriter writer(Cluster::alone(), activity_, {}, run_.path(), 1);
  ASSERT_TRUE(wait_for_status_after(0));
  activity_.begin("data", "waits for data");
  activity_.set_progress({.step = 3, .total_steps = 9, .epochs = 0.5, .images = 12}, 4);
  activity_.set_metrics({{"loss", 0.25}});
  const auto before = wall_clock();
  ASSERT_TRUE(wait_for_status_after(before));
  auto now = file();
  EXPECT_EQ(now["state"], "training");
  EXPECT_EQ(now["status"]["step"], 3);
  EXPECT_EQ(now["status"]["images"], 12);
  EXPECT_EQ(now["status"]["where"], "data");
  EXPECT_EQ(now["status"]["metrics"]["loss"], 0.25);
  writer.end("failed", "out of luck");
  now = file();
  EXPECT_EQ(now["state"], "failed");
  EXPECT_EQ(now["reason"], "out of luck");
}

TEST_F(StatusWriting, RemovesFilesOfEarlierLaunches) {
  fs::create_directory(status_folder(run_.path()));
  std::ofstream(status_file(run_.path(), 7)) << "{}";
  StatusWriter writer(Cluster::alone(), activity_, {}, run_.path(), 2);
  writer.end("done", "");
  EXPECT_FALSE(fs::exists(status_file(run_.path(), 7)));
  EXPECT_FALSE(file(/*start=*/2).is_null());
}

TEST_F(StatusWriting, WarnsOnceIfDiskIsFull) {
  StatusWriter writer(Cluster::alone(), activity_, {}, run_.path(), 1);
  ASSERT_TRUE(wait_for_status_after(0));
  const auto name = status_file(run_.path(), 0);
  fs::create_symlink("/dev/full", run_ / "full");
  fs::rename(run_ / "full", name);
  EXPECT_TRUE(log_.wait_for_text("warning `trainer status`"));
  log_.take();
  fs::remove(name);
  EXPECT_TRUE(wait_for_status_after(0)) << "once the disk has space";
  fs::create_symlink("/dev/full", run_ / "full");
  fs::rename(run_ / "full", name);
  writer.end("done", "");
  EXPECT_EQ(log_.take(), "");
}

TEST_F(StatusWriting, WarnsOnceIfFolderIsMissing) {
  StatusWriter writer(Cluster::alone(), activity_, {}, run_ / "none", 1);
  EXPECT_TRUE(log_.wait_for_text("warning `trainer status`"));
  log_.take();
  writer.end("done", "");
  EXPECT_EQ(log_.take(), "");
}

TEST_F(StatusWriting, AnswersRequestsForEvents) {
  StatusWriter writer(Cluster::alone(), activity_, {}, run_.path(), 1);
  const auto asks = [&](const std::string& text) {
    std::ofstream(run_ / "asked") << text;
    fs::rename(run_ / "asked", ask_events_file(run_.path()));
    return wait_until([&] {
      std::ostringstream events;
      events << std::ifstream(asked_events_file(run_.path(), 0)).rdbuf();
      return events.str().find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(asks("the first"));
  EXPECT_TRUE(asks("the second"));
}

}  // namespace
}  // namespace millrace::testing
