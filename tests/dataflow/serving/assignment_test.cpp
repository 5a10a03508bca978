// Every batch number is requested from a server and delivered once.
#include "millrace/dataflow/serving/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "millrace/base/random.h"

namespace millrace::serving {
namespace {

using namespace std::chrono_literals;
using Clock = Assignment::Clock;

TEST(ServingAssignment, DeliversEveryNumberOnce) {
  Rng rng{3};
  Assignment assignment;
  auto now = Clock::time_point{};
  std::vector<Assignment::Task> under_way;
  std::vector<std::int64_t> first_answers;
  std::set<int> here;
  std::int64_t head = 0;
  while (head < 2000) {
    now += 10ms;
    const auto server = static_cast<int>(rng.below(4));
    const auto what = rng.below(20);
    if (what == 0) {
      assignment.leave(server);
      here.erase(server);
      // Requests to a server that left are lost, or are answered nevertheless.
      if (rng.chance(0.5))
        std::erase_if(under_way, [&](const auto& task) { return task.server == server; });
    } else if (what == 1) {
      assignment.join(server);
      here.insert(server);
    } else if (!under_way.empty()) {
      const auto task = under_way.begin() + static_cast<long>(rng.below(under_way.size()));
      if (assignment.arrived(task->server, task->number, now))
        first_answers.push_back(task->number);
      under_way.erase(task);
    }
    while (std::ranges::count(first_answers, head)) {
      assignment.advance();
      ++head;
    }
    while (const auto task = assignment.next(16, now)) {
      EXPECT_TRUE(here.contains(task->server));
      EXPECT_GE(task->number, head);
      EXPECT_LT(task->number, head + 16);
      EXPECT_LE(assignment.asked(task->server), Assignment::kCredit);
      under_way.push_back(*task);
    }
  }
  std::ranges::sort(first_answers);
  for (std::int64_t k = 0; k < head; ++k) ASSERT_EQ(first_answers[static_cast<std::size_t>(k)], k);
}

TEST(ServingAssignment, FavoursFasterServers) {
  Assignment assignment;
  assignment.join(0);  // takes 1 ms
  assignment.join(1);  // takes 4 ms
  std::map<int, int> answers;
  std::map<int, std::vector<std::int64_t>> queue;
  auto now = Clock::time_point{} + 1h;
  std::set<std::int64_t> there;
  for (int ms = 1; ms <= 4000; ++ms) {
    now += 1ms;
    for (const auto server : {0, 1}) {
      auto& asked = queue[server];
      if (asked.empty() || (server == 1 && ms % 4 != 0)) continue;
      if (assignment.arrived(server, asked.front(), now)) there.insert(asked.front());
      asked.erase(asked.begin());
      ++answers[server];
    }
    for (; there.contains(assignment.head()); assignment.advance()) there.erase(assignment.head());
    while (const auto task = assignment.next(16, now)) queue[task->server].push_back(task->number);
  }
  EXPECT_GT(answers[0], 3 * answers[1]);
  EXPECT_GT(answers[1], 500);
}

TEST(ServingAssignment, RetriesSlowServers) {
  Assignment assignment;
  assignment.join(0);
  assignment.join(1);
  auto now = Clock::time_point{} + 1h;
  const int slow = 0, quick = 1;
  // Makes more requests than one server may have before its first answer.
  std::vector<Assignment::Task> first;
  while (const auto task = assignment.next(4, now)) first.push_back(*task);
  for (const auto& task : first) {
    EXPECT_TRUE(
        assignment.arrived(task.server, task.number, now + (task.server == quick ? 1ms : 2000ms)));
    assignment.advance();
  }
  ASSERT_TRUE(assignment.next(1, now)->server == quick);
  assignment.arrived(quick, assignment.head(), now + 2s);
  int asked = 0;
  for (now += 2s; now < Clock::time_point{} + 1h + 30s; now += 10ms) {
    assignment.advance();
    const auto task = assignment.next(2, now);
    ASSERT_TRUE(task);
    asked += task->server == slow;
    assignment.arrived(task->server, task->number, now + 1ms);
  }
  EXPECT_GE(asked, 2);
}

TEST(ServingAssignment, RequestsOverdueNumbersFromOtherServer) {
  Assignment assignment;
  assignment.join(0);
  auto now = Clock::time_point{} + 1h;
  const auto first = assignment.next(1, now);
  ASSERT_TRUE(first);
  EXPECT_FALSE(assignment.next(1, now));
  assignment.join(1);
  EXPECT_FALSE(assignment.next(1, now + 1s));
  const auto again = assignment.next(1, now + 11s);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->number, first->number);
  EXPECT_EQ(again->server, 1);
  EXPECT_FALSE(assignment.next(1, now + 22s)) << "a number is requested twice at most";
  EXPECT_TRUE(assignment.arrived(1, 0, now + 23s));
  EXPECT_FALSE(assignment.arrived(0, 0, now + 24s));
}

TEST(ServingAssignment, RequestsLostNumbersAgain) {
  Assignment assignment;
  const auto now = Clock::time_point{} + 1h;
  assignment.join(0);
  ASSERT_EQ(assignment.next(16, now)->number, 0);
  ASSERT_EQ(assignment.next(16, now)->number, 1);
  EXPECT_FALSE(assignment.next(16, now)) << "no more credit before the first answer";
  assignment.lost(0, 0);
  const auto again = assignment.next(16, now);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->server, 0);
  EXPECT_EQ(again->number, 0);
  assignment.lost(0, 1);
  EXPECT_TRUE(assignment.arrived(0, 1, now)) << "it was late, not lost";
  EXPECT_EQ(assignment.next(16, now)->number, 2);
  assignment.lost(0, 17);  // never requested
  assignment.lost(3, 0);   // unknown server
  EXPECT_EQ(assignment.asked(0), 2U);
}

TEST(ServingAssignment, AcceptsLateAnswerOnce) {
  Assignment assignment;
  assignment.join(0);
  const auto now = Clock::time_point{} + 1h;
  ASSERT_TRUE(assignment.next(1, now));
  assignment.leave(0);
  EXPECT_TRUE(assignment.arrived(0, 0, now));
  EXPECT_FALSE(assignment.arrived(0, 0, now));
  assignment.join(1);
  EXPECT_FALSE(assignment.next(1, now)) << "already present";
  EXPECT_FALSE(assignment.arrived(1, 5, now)) << "not requested";
}

}  // namespace
}  // namespace millrace::serving
