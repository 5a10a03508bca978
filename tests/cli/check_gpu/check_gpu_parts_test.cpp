// The report of `trainer check-gpu` and the timeouts of what it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <csignal>
#include <fstream>
#include <limits>

#include "millrace/base/files.h"
#include "millrace/cli/check_gpu/page.h"
#include "millrace/cli/check_gpu/programs.h"
#include "millrace/cli/check_gpu/report.h"
#include "tests/support/scratch.h"
#include "tests/support/wait.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Scratch;

ProgramEnd shell(const Scratch& folder, const std::string& command, double seconds = 60,
                 bool own_group = true) {
  return Program({"sh", "-c", command}, folder / "log",
                 {.seconds = seconds, .own_group = own_group})
      .wait();
}

/// Nobody may have asked how it ended.
bool is_gone(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string id, name, state;
  file >> id >> name >> state;
  return !file || state == "Z" || state == "X";
}

TEST(PartReport, IsWholeAfterEveryAddition) {
  const Scratch folder;
  const auto file = folder / "part.json";
  PartReport report(file);
  const auto written = [&] { return Json::parse(read_file(file)); };
  EXPECT_TRUE(written().at("checks").empty());
  report.check("one", true, "as it was");
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(written().at("checks").size(), 1U);
  report.check_error("two", 2e-3, 1e-3);
  EXPECT_FALSE(report.ok());
  EXPECT_EQ(written().at("checks").at(1).at("ok"), false);
  EXPECT_EQ(written().at("checks").at(1).at("found"), "0.002, at most 0.001");
  report.row("Speed", {{"batch", 1}, {"images/s", 2.5}});
  report.fact("driver", "580");
  report.note("A sentence.");
  report.skip("there is none");
  const auto all = written();
  EXPECT_EQ(all.at("tables").at("Speed").at(0).at("images/s"), 2.5);
  EXPECT_EQ(all.at("facts").at("driver"), "580");
  EXPECT_EQ(all.at("notes").at(0), "A sentence.");
  EXPECT_EQ(all.at("skipped"), "there is none");
}

TEST(PartReport, AnErrorThatIsNoNumberIsAFailure) {
  const Scratch folder;
  PartReport report(folder / "part.json");
  report.check_error("a loss", std::numeric_limits<double>::quiet_NaN(), 1e-3);
  EXPECT_FALSE(report.ok());
}

TEST(Program, SaysHowItEnded) {
  const Scratch folder;
  EXPECT_TRUE(shell(folder, "exit 0").ok());
  EXPECT_EQ(shell(folder, "exit 0").failure(), "");
  EXPECT_EQ(shell(folder, "exit 3").failure(), "exit code 3");
  EXPECT_THAT(shell(folder, "kill -SEGV $$").failure(), HasSubstr("signal 11 ("));
  EXPECT_THROW(Program({"no-such-program"}, folder / "log", {}), Error);
}

TEST(Program, IsKilledAtItsTimeoutWithAllThatItStarted) {
  const Scratch folder;
  // Neither heeds a signal that can be heeded.
  const auto end = shell(folder,
                         "trap '' TERM INT; (trap '' TERM; echo $$ > /dev/null; exec sleep 1000) & "
                         "echo $! > " +
                             (folder / "child").string() + "; wait",
                         0.5);
  EXPECT_TRUE(end.timed_out);
  EXPECT_FALSE(end.ok());
  EXPECT_THAT(end.failure(), HasSubstr("it did not end within"));
  pid_t child = 0;
  std::ifstream(folder / "child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(testing::comes_to([&] { return is_gone(child); }));
}

TEST(Program, LeavesNothingBehindWhenItEndsByItself) {
  const Scratch folder;
  const auto end = shell(folder, "sleep 1000 & echo $! > " + (folder / "child").string());
  EXPECT_TRUE(end.ok());
  pid_t child = 0;
  std::ifstream(folder / "child") >> child;
  ASSERT_GT(child, 0);
  EXPECT_TRUE(testing::comes_to([&] { return is_gone(child); }));
}

TEST(Program, IsKilledOnceAsked) {
  const Scratch folder;
  Program program({"sleep", "1000"}, folder / "log", {.seconds = 1000, .own_group = true});
  EXPECT_EQ(program.wait([] { return true; }).signal, SIGKILL);
}

TEST(Program, ItsOutputIsFoundInItsLog) {
  const Scratch folder;
  shell(folder, "echo before; echo '{\"a\": 1}'; echo '{\"a\": 2}'; echo; echo oops >&2; echo >&2");
  EXPECT_EQ(last_json(folder / "log"), "{\"a\": 2}");
  EXPECT_EQ(last_words(folder / "log"), "{\"a\": 2}");
  EXPECT_EQ(last_words(folder / "log.err"), "oops");
  EXPECT_EQ(last_words(folder / "none"), "");
  shell(folder, "echo 'trainer: error: it fell'; echo 'frame #1: main'");
  EXPECT_EQ(last_words(folder / "log"), "trainer: error: it fell");
}

Json part_of(const char* state) {
  return {{"name", "steps"},
          {"title", "what it finds out"},
          {"state", state},
          {"seconds", 1.25},
          {"why", ""},
          {"checks", Json::array({{{"what", "a|b"}, {"ok", true}, {"found", "0"}},
                                  {{"what", "loss"}, {"ok", false}, {"found", "2, at most 1"}}})},
          {"facts", {{"driver", "580.1"}}},
          {"tables", {{"Speed", Json::array({{{"kind", "x|y"}, {"images/s", 12.3456}}})}}},
          {"notes", Json::array({"A note."})}};
}

TEST(CheckGpuPage, HasEveryPartWithItsFailuresTablesAndNotes) {
  const Json report = {{"version", "1"},
                       {"started", "today"},
                       {"device", "cuda"},
                       {"small", false},
                       {"seconds", 2.0},
                       {"result", "failed"},
                       {"parts", Json::array({part_of("failed"),
                                              {{"name", "late"},
                                               {"title", "more"},
                                               {"state", "not begun"},
                                               {"seconds", 0.0},
                                               {"why", "the minutes were over"}}})}};
  const auto page = check_gpu_page(report);
  for (const auto* part : {"# trainer check-gpu: failed\n", "1 of 2 checks failed",
                           "- **failed** loss: 2, at most 1\n", "- driver: 580.1\n", "### Speed\n",
                           "| kind | images/s |\n| --- | --- |\n", "| x\\|y | 12.35 |\n",
                           "A note.\n", "not begun", "the minutes were over"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("a|b")));
}

TEST(CheckGpuPage, TheTerminalGetsFailuresAndFigures) {
  EXPECT_THAT(part_lines(part_of("failed")),
              AllOf(HasSubstr("steps        failed        1.2 s  1 of 2 checks failed\n"),
                    HasSubstr("    failed: loss: 2, at most 1\n"),
                    HasSubstr("      kind x|y, images/s 12.35\n")));
}

}  // namespace
}  // namespace millrace::cli
