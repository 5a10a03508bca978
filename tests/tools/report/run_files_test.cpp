// The state of a run as read from its folder: done, training, crashed, of an older version.
#include "millrace/tools/report/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/report/run_folders.h"

namespace millrace::report {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RunFolders;

TEST(RunFiles, ReportsFinishedRunAsDone) {
  const RunFolders folders;
  const auto run = read_run_files(folders.make_run("a-1"));
  EXPECT_EQ(run.state, RecordedState::done);
  EXPECT_EQ(run.state_text, "done after step 40");
  EXPECT_EQ(run.name, "a-1");
  EXPECT_THAT(run.remarks, IsEmpty());
  ASSERT_TRUE(run.newest_results());
  EXPECT_EQ(run.newest_results()->step, 40);
  EXPECT_EQ(trained_seconds(run, 1767225600 + 40), 40);
}

std::string without_end(std::string json) {
  json.replace(json.find("\"ended\""), 7, "\"other\"");
  return json;
}

TEST(RunFiles, ReportsLockedRunAsTraining) {
  const RunFolders folders;
  const auto folder = folders.make_run("a-1");
  RunFolders::write(folder / "record.json", without_end(read_file(folder / "record.json")));
  {
    const FileLock lock(folder / "lock");
    EXPECT_EQ(read_run_files(folder).state, RecordedState::training);
    EXPECT_EQ(read_run_files(folder).state_text, "training; step 40, 1.00 epochs so far");
  }
  RunFolders::write(folder / "log.txt", "one\nerror: no memory is left\n");
  const auto run = read_run_files(folder);
  EXPECT_EQ(run.state, RecordedState::broken);
  EXPECT_THAT(run.log_end, HasSubstr("no memory is left"));
}

TEST(RunFiles, AddsRemarksForDamagedFiles) {
  const RunFolders folders;
  const auto folder = folders.make_run("a-1");
  for (const char* name : {"record.json", "config.toml"}) {
    const auto whole = read_file(folder / name);
    RunFolders::write(folder / name, "{\n[data");
    EXPECT_EQ(read_run_files(folder).remarks.size(), 1) << name;
    fs::remove(folder / name);
    EXPECT_NO_THROW(read_run_files(folder)) << name;
    RunFolders::write(folder / name, whole);
  }
  fs::remove(folder / "metrics.jsonl");
  EXPECT_THAT(read_run_files(folder).remarks, Contains(HasSubstr("No metrics.jsonl")));
}

TEST(RunFiles, RejectsFolderThatIsNotRun) {
  const testing::Scratch scratch;
  MILLRACE_EXPECT_ERROR(read_run_files(scratch.path()), scratch.path(), "not a run");
  MILLRACE_EXPECT_ERROR(read_run_files(scratch / "none"), scratch / "none", "not a folder");
}

TEST(RunFiles, DistinguishesEqualNamesByFolder) {
  const RunFolders folders;
  const std::vector<fs::path> paths{folders.make_run("x/run-1"), folders.make_run("y/run-1"),
                                    folders.make_run("z-1")};
  const auto runs = read_runs(paths);
  EXPECT_THAT((std::vector<std::string>{runs[0].name, runs[1].name, runs[2].name}),
              ElementsAre("x/run-1", "y/run-1", "z-1"));
}

TEST(RunFiles, ExcludesPausesFromTrainingTime) {
  const RunFolders folders;
  const auto folder = folders.make_run("a-1");
  RunFolders::write(folder / "record.json",
                    R"({"starts": [{"time": "1970-01-01T00:01:00Z", "ended":
 {"time": "1970-01-01T00:02:00Z", "step": 1, "reason": "SIGTERM"}},
 {"time": "1970-01-01T01:00:00Z"}]})");
  const auto run = read_run_files(folder);
  EXPECT_EQ(trained_seconds(run, 90), 30);
  EXPECT_EQ(trained_seconds(run, 3600 + 10), 60 + 10);
  EXPECT_EQ(trained_seconds(run, 30), 0);
}

TEST(RunFiles, ReadsClassScoresByStep) {
  const RunFolders folders;
  const auto folder = folders.make_run("a-1");
  fs::create_directories(folder / "scores");
  RunFolders::write(folder / "scores" / "step-000040.json",
                    R"({"bbox": {"category_ids": [1, 2], "category_ap": [0.5, -1]}})");
  RunFolders::write(folder / "scores" / "step-000020.json", "{");
  const auto run = read_run_files(folder);
  ASSERT_EQ(run.class_scores.at("bbox").size(), 1);
  EXPECT_EQ(run.class_scores.at("bbox")[0].ap.at(1), .5);
  EXPECT_THAT(run.remarks, Contains(HasSubstr("step-000020.json")));
}

}  // namespace
}  // namespace millrace::report
