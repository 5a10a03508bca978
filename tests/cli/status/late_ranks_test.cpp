// Late ranks are identified by how long each rank waited, independently of their hosts' clocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "millrace/base/errors.h"
#include "millrace/cli/status/event_log.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The event log of a rank whose clock is `ahead_s` seconds fast.
struct Log : EventLog {
  Log(std::int64_t number, double ahead_s)
      : EventLog{.rank = number, .name = "rank " + std::to_string(number)}, ahead(ahead_s) {
    written_s = 100 + ahead;
  }
  void add(const std::string& kind, const std::string& event, const std::string& of, double begin,
           double end, std::int64_t count = -1) {
    events.push_back({.kind = kind,
                      .name = event,
                      .detail = of,
                      .number = count,
                      .start_s = begin + ahead,
                      .seconds = std::min(end, 100.) - begin,
                      .goes_on = end > 100});
  }
  double ahead;
};

constexpr double kGoesOn = 1000;

/// Returns the logs of two ranks whose fifth step is delayed by an image of rank 1.
std::vector<EventLog> two_ranks(double ahead_s) {
  Log a(0, 0), b(1, ahead_s);
  for (int step = 1; step <= 9; ++step) {
    const auto begins = 10. * step, came = step == 5 ? begins + 8 : begins + 5.0005;
    a.add("step", "step", "takes step", begins - 4, begins + 1);
    a.add("exchange", "agreement", "step " + std::to_string(step), begins + 5, came + 0.01, step);
    b.add("exchange", "agreement", "step " + std::to_string(step), came, came + 0.01, step);
    b.add("data", "data", "waits for data", begins + 1, came);
    b.add("stage", "read", "quick.jpg", begins + 1, begins + 1.1, 3);
  }
  b.add("stage", "decode", "/photos/slow.jpg", 52, 57.9, 4);
  return {a, b};
}

TEST(LateRanks, FindsRankThatWaitedShortest) {
  for (const double ahead_s : {0., -3600., 7.}) {
    const auto late = late_exchanges(two_ranks(ahead_s));
    ASSERT_EQ(late.size(), 1U) << "half a millisecond is no delay";
    EXPECT_EQ(late[0].of, "step 5");
    EXPECT_THAT(late[0].late, ElementsAre(1));
    EXPECT_NEAR(late[0].seconds, 3, 1e-6);
    EXPECT_THAT(late[0].doing, AllOf(HasSubstr("waits for data; 'decode'"),
                                     HasSubstr("/photos/slow.jpg"), HasSubstr("5.9 s")));
  }
}

TEST(LateRanks, FindsMissingRank) {
  Log a(0, 0), b(1, 60), c(2, 0);
  for (auto* log : {&a, &b, &c}) log->add("exchange", "agreement", "step 1", 10, 11, 0);
  a.add("exchange", "agreement", "step 2", 40, kGoesOn, 1);
  c.add("exchange", "agreement", "step 2", 41, kGoesOn, 1);
  b.add("callback", "callback evaluate", "callback 'evaluate' in trigger", 20, kGoesOn);
  b.add("evaluation", "detect", "images 7, 8", 30, kGoesOn);
  const auto late = late_exchanges({a, b, c});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_TRUE(late[0].goes_on);
  EXPECT_THAT(late[0].late, ElementsAre(1));
  EXPECT_EQ(late[0].seconds, 60);
  EXPECT_THAT(late[0].doing, AllOf(HasSubstr("callback 'evaluate' in trigger; 'detect'"),
                                   HasSubstr("images 7, 8")));
}

TEST(LateRanks, ReportsUnknownActivity) {
  Log a(0, 0), killed(1, 0);
  a.add("exchange", "agreement", "step 2", 40, kGoesOn, 1);
  const auto late = late_exchanges({a, killed});
  ASSERT_EQ(late.size(), 1U);
  EXPECT_THAT(late[0].late, ElementsAre(1));
  EXPECT_EQ(late[0].doing, "unknown");
}

TEST(LateRanks, IgnoresStepsMissingFromShorterLogs) {
  Log a(0, 0), b(1, 0);
  for (int step = 0; step < 9; ++step) {
    const auto of = "step " + std::to_string(step);
    a.add("exchange", "agreement", of, step, step + 0.5, step);
    if (step >= 4) b.add("exchange", "agreement", of, step, step + 0.5, step);
  }
  EXPECT_TRUE(late_exchanges({a, b}).empty());
  Log alone(0, 0);
  EXPECT_TRUE(late_exchanges({alone}).empty());
}

TEST(LateRanks, ReadsWrittenEvents) {
  const auto json = Json::parse(R"x({"traceEvents":[
{"ph":"M","name":"process_name","pid":3,
 "args":{"name":"rank 3 (b)","host":"b","process":4,"why":"SIGTERM","written":2000000.000
}
},
{"ph":"B","cat":"data","name":"data","pid":3,"tid":9,"ts":1500000.000,
 "args":{"detail":"waits","goes_on_us":500000.000}},
{"ph":"X","cat":"stage","name":"decode","pid":3,"tid":8,"ts":1000000.000,"dur":250000.000,
 "args":{"detail":"a.jpg","number":7,"bytes":12}}
]
})x");
  const auto log = read_event_log(json, "a file");
  EXPECT_EQ(log.rank, 3);
  EXPECT_EQ(log.why, "SIGTERM");
  EXPECT_EQ(log.written_s, 2);
  ASSERT_EQ(log.events.size(), 2U);
  EXPECT_EQ(log.events[0].name, "decode") << "by start";
  EXPECT_EQ(log.events[0].number, 7);
  EXPECT_EQ(log.events[0].end_s(), 1.25);
  EXPECT_TRUE(log.events[1].goes_on);
  EXPECT_EQ(log.events[1].seconds, 0.5);
  EXPECT_THROW(read_event_log(Json::object(), "a file"), Error);
}

}  // namespace
}  // namespace millrace::cli
