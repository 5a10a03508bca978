// The recent events of a process can be read at any time and are written to a file when the process
// dies.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "millrace/base/events/event_ring.h"
#include "millrace/base/events/event_text.h"
#include "millrace/base/events/last_events.h"
#include "millrace/base/files.h"
#include "millrace/base/process/stop_signals.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

using nlohmann::json;

std::vector<EventRecord> all_events() {
  std::vector<EventRecord> all;
  EventRing::own().each([&](const EventRecord& event) { all.push_back(event); });
  return all;
}

/// Returns the events with this name, oldest first.
std::vector<EventRecord> events_called(std::string_view name) {
  auto all = all_events();
  std::erase_if(all, [&](const auto& event) { return event.name.data() != name; });
  return all;
}

/// Returns the JSON of the last event with this name.
json written(std::string_view name) {
  const auto all =
      json::parse(events_text({3, 4711, "rank 3 (a)", "a"}, "asked")).at("traceEvents");
  json found;
  for (const auto& event : all)
    if (event.at("name") == name) found = event;
  return found;
}

TEST(EventRing, KeepsLastThousandPerKind) {
  for (int i = 0; i < 1500; ++i) Event(EventKind::stage, "many", "photo.jpg", i);
  const auto many = events_called("many");
  ASSERT_EQ(many.size(), EventRing::kKept);
  for (std::size_t i = 0; i < many.size(); ++i)
    EXPECT_EQ(many[i].number, static_cast<std::int64_t>(500 + i));
}

TEST(EventRing, KeepsEachKindSeparately) {
  Event(EventKind::exchange, "agreement", "step 6", 5);
  for (int i = 0; i < 1500; ++i) Event(EventKind::stage, "crowd", "", i);
  ASSERT_EQ(events_called("agreement").size(), 1U);
  EXPECT_STREQ(events_called("agreement")[0].detail.data(), "step 6");
}

TEST(EventRing, ReportsOpenEventUntilItEnds) {
  {
    const Event open(EventKind::callback, "goes on", "trigger");
    EXPECT_EQ(written("goes on").at("ph"), "B");
    EXPECT_GE(written("goes on").at("args").at("goes_on_us"), 0);
    for (int i = 0; i < 3000; ++i) Event(EventKind::data, "later");
    EXPECT_EQ(events_called("goes on").size(), 1U) << "later events must not evict an open event";
  }
  ASSERT_EQ(events_called("goes on").size(), 1U);
  EXPECT_EQ(written("goes on").at("ph"), "X");
  EXPECT_GT(written("goes on").at("dur"), 0);
  for (int i = 0; i < 100; ++i) const Event brief(EventKind::callback, "brief");
  EXPECT_LT(events_called("brief").size(), 100U) << "very short hooks must not all be recorded";
}

TEST(EventRing, RecordsExcessOpenEventsWhenTheyEnd) {
  std::vector<std::unique_ptr<Event>> open;
  for (std::size_t i = 0; i < EventRing::kMostOpen + 10; ++i)
    open.push_back(std::make_unique<Event>(EventKind::data, "at once"));
  EXPECT_EQ(events_called("at once").size(), EventRing::kMostOpen);
  open.clear();
  EXPECT_EQ(events_called("at once").size(), EventRing::kMostOpen + 10);
}

TEST(EventRing, ReadsCompleteRecordsDuringWrites) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> writers;
  for (int t = 0; t < 4; ++t)
    writers.emplace_back([&, t] {
      const std::string name = "writer " + std::to_string(t);
      for (std::int64_t i = 0; !stop; ++i)
        Event(EventKind::stage, name, name + std::string(80, static_cast<char>('a' + i % 26)), i);
    });
  for (int look = 0; look < 300; ++look)
    for (const auto& event : all_events()) {
      const std::string name = event.name.data(), detail = event.detail.data();
      if (!name.starts_with("writer ")) continue;
      ASSERT_EQ(detail.substr(0, name.size()), name);
      ASSERT_EQ(detail.substr(name.size()),
                std::string(80, static_cast<char>('a' + event.number % 26)));
    }
  stop = true;
  for (auto& writer : writers) writer.join();
}

TEST(EventRing, EscapesNamesInJson) {
  Event(EventKind::file, "odd", "a\"b\\c\n\x80\xff caf\xc3\xa9 \xed\xa0\x80.jpg").set_bytes(12);
  EXPECT_EQ(written("odd").at("args").at("detail"), "a\"b\\c??? caf\u00e9 ???.jpg");
  EXPECT_EQ(written("odd").at("args").at("bytes"), 12);
  EXPECT_EQ(written("odd").at("cat"), "file");
  EXPECT_EQ(written("odd").at("pid"), 3);
  // A long path is cut at its beginning, since its end identifies the file.
  const auto path = std::string(200, 'd') + "/photo.jpg";
  Event(EventKind::stage, "long path", path);
  Event(EventKind::step, "long list", "images 1, " + std::string(200, '2'));
  const auto end = written("long path").at("args").at("detail").get<std::string>();
  EXPECT_EQ(end.size(), sizeof(EventRecord::detail) - 1);
  EXPECT_TRUE(end.starts_with("~") && end.ends_with("/photo.jpg")) << end;
  const auto begin = written("long list").at("args").at("detail").get<std::string>();
  EXPECT_TRUE(begin.starts_with("images 1, 2") && begin.ends_with("~")) << begin;
}

TEST(EventRing, CallsWatcherAtBeginAndEnd) {
  static std::vector<std::string> seen;
  static constexpr EventWatcher kWatcher{
      [](const EventRecord& event) {
        seen.emplace_back(event.name.data());
        return static_cast<std::uint64_t>(seen.size());
      },
      [](std::uint64_t number) { seen.push_back("end of " + std::to_string(number)); }};
  watch_events(&kWatcher);
  { const Event event(EventKind::step, "watched"); }
  watch_events(nullptr);
  Event(EventKind::step, "unwatched");
  EXPECT_THAT(seen, ::testing::ElementsAre("watched", "end of 1"));
}

struct RecentEvents : ::testing::Test {
  Scratch folder_;
  std::filesystem::path file_ = folder_ / "events" / "rank-0003.json";

  LastEventsOptions options() const {
    return {.file = file_, .rank = 3, .name = "rank 3 (a)", .host = "a", .at_sigterm = true};
  }
  /// Returns the wait status of a child process that calls `end` during an event.
  int status_of(const std::function<void()>& end) const {
    const auto child = ::fork();
    if (child == 0) {
      const int nowhere = ::open("/dev/null", O_WRONLY);
      ::dup2(nowhere, STDERR_FILENO);  // discards sanitizer output
      const StopSignals signals;
      const LastEvents last(options());
      const Event event(EventKind::stage, "decode", "photo.jpg");
      end();
      ::_exit(7);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status;
  }
  json events() const { return json::parse(read_file(file_)).at("traceEvents"); }
};

TEST_F(RecentEvents, AreWrittenOnFatalSignal) {
  const std::pair<int, std::string> deadly[] = {{SIGSEGV, "SIGSEGV"},
                                                {SIGBUS, "SIGBUS"},
                                                {SIGABRT, "SIGABRT"},
                                                {SIGFPE, "SIGFPE"},
                                                {SIGILL, "SIGILL"}};
  for (const auto& [signal, name] : deadly) {
    std::filesystem::remove_all(folder_ / "events");
    const auto status = status_of([of = signal] { ::raise(of); });
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ASSERT_TRUE(WIFSIGNALED(status)) << status;  // the signal is passed on to the previous handler
    EXPECT_EQ(WTERMSIG(status), signal);
#endif
    const auto all = events();
    EXPECT_EQ(all[0].at("args").at("name"), "rank 3 (a)");
    EXPECT_EQ(all[0].at("args").at("host"), "a");
    EXPECT_EQ(all[0].at("args").at("why"), name);
    EXPECT_EQ(all.back().at("name"), "decode");
    EXPECT_EQ(all.back().at("ph"), "B") << "the event was still open";
    EXPECT_EQ(all.back().at("args").at("detail"), "photo.jpg");
  }
}

TEST_F(RecentEvents, AreWrittenOnAbort) {
  status_of([] { std::abort(); });
  EXPECT_EQ(events()[0].at("args").at("why"), "SIGABRT");
}

TEST_F(RecentEvents, AreWrittenOnSigterm) {
  const auto status = status_of([] { ::raise(SIGTERM); });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
  EXPECT_EQ(events()[0].at("args").at("why"), "SIGTERM");
  // A later signal does not overwrite the file that was written after an error.
  status_of([] {
    write_last_events("an error");
    ::raise(SIGTERM);
  });
  EXPECT_EQ(events()[0].at("args").at("why"), "an error");
}

TEST_F(RecentEvents, AreNotWrittenWithoutFile) {
  EXPECT_FALSE(write_last_events("nothing"));
  EXPECT_EQ(last_events_file(), "");
  const LastEvents last(options());
  EXPECT_EQ(last_events_file(), file_.string());
  EXPECT_TRUE(write_last_events("something"));
}

TEST_F(RecentEvents, AreNotWrittenToSharedFolder) {
  auto mine = options();
  mine.is_private = true;
  std::filesystem::create_directory(file_.parent_path());
  ::chmod(file_.parent_path().c_str(), 0777);
  {
    const LastEvents last(mine);
    EXPECT_FALSE(write_last_events("other users can write to the folder"));
  }
  std::filesystem::remove(file_.parent_path());
  const LastEvents last(mine);
  EXPECT_TRUE(write_last_events("only this user can write to the folder"));
  struct stat state {};
  ::stat(file_.parent_path().c_str(), &state);
  EXPECT_EQ(state.st_mode & 0777, 0700U);
}

}  // namespace
}  // namespace millrace::testing
