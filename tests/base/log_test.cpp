#include "millrace/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include "millrace/base/files.h"
#include "tests/support/scratch.h"

namespace millrace {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

/// Tests of the process-wide logger, set up as in main().
class LogFile : public ::testing::Test {
 protected:
  LogFile() { start_logging(); }
  ~LogFile() override {
    log_to_file({});
    set_process_name("", /*chief=*/true);
    spdlog::set_default_logger(before_);
  }
  std::string text() const { return read_file(file_); }

 private:
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();

 protected:
  testing::Scratch scratch_;
  std::filesystem::path file_ = scratch_ / "log.txt";
};

TEST_F(LogFile, ContainsEarlierMessages) {
  log_info("early");
  log_to_file(file_);
  log_info("late");
  EXPECT_THAT(text(), ::testing::ContainsRegex(" info early\n.* info late\n"));
}

TEST_F(LogFile, EscapesControlCharacters) {
  log_to_file(file_);
  log_info("a class named \x1b]0;title\x07");
  EXPECT_EQ(text().find('\x1b'), std::string::npos);
  EXPECT_THAT(text(), HasSubstr("\\x1b]0;title\\x07"));
}

TEST_F(LogFile, AppendsUntilClosed) {
  log_to_file(file_);
  log_info("one");
  log_to_file({});
  log_info("lost");
  log_to_file(file_);
  log_info("two");
  EXPECT_THAT(text(),
              ::testing::AllOf(HasSubstr(" one\n"), Not(HasSubstr("lost")), EndsWith(" two\n")));
}

TEST_F(LogFile, ContainsErrorsLoggedToFileOnly) {
  log_error_in_file("nowhere");
  log_to_file(file_);
  log_error_in_file("the end");
  EXPECT_THAT(text(), ::testing::AllOf(Not(HasSubstr("nowhere")), EndsWith(" error the end\n")));
}

TEST_F(LogFile, ContainsEverythingWhenQuiet) {
  start_logging(LogLevel::quiet);
  EXPECT_TRUE(log_is_quiet());
  log_to_file(file_);
  ::testing::internal::CaptureStderr();
  log_info("news");
  log_warning("a fault");
  log_result("the result");
  log_info_in_file("a long table");
  const auto shown = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(shown, ::testing::AllOf(Not(HasSubstr("news")), HasSubstr(" warning a fault\n"),
                                      EndsWith("\nthe result\n"), Not(HasSubstr("table"))));
  EXPECT_THAT(text(),
              ::testing::AllOf(HasSubstr(" info news\n"), HasSubstr(" warning a fault\n"),
                               HasSubstr(" info the result\n"), HasSubstr(" info a long table\n")));
}

TEST_F(LogFile, ShowsResultOnceUnlessQuiet) {
  EXPECT_FALSE(log_is_quiet());
  ::testing::internal::CaptureStderr();
  log_result("the result");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), EndsWith(" info the result\n"));
}

TEST_F(LogFile, NamesProcessInWarningsOnly) {
  log_to_file(file_);
  set_process_name("rank 0", /*chief=*/true);
  log_info("shown");
  log_warning("careful");
  set_process_name("rank 3", /*chief=*/false);
  log_info("hidden");
  log_warning("look out");
  EXPECT_THAT(text(),
              ::testing::AllOf(HasSubstr(" info shown\n"), HasSubstr(" warning rank 0: careful\n"),
                               Not(HasSubstr("hidden")), EndsWith(" warning rank 3: look out\n")));
}

TEST_F(LogFile, RejectsUnwritablePath) {
  EXPECT_THAT([] { log_to_file("/proc/nowhere/log.txt"); },
              ::testing::ThrowsMessage<Error>(HasSubstr("/proc/nowhere/log.txt")));
}

}  // namespace
}  // namespace millrace
