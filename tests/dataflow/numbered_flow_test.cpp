// Items requested by number equal the items of the plain flow, in any order and for any number of
// flows.
#include "millrace/dataflow/engine/dataflow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/group_plan.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

/// Counts wake-ups and waits for them.
class WakeUpCounter {
 public:
  WakeUp wake() {
    return [this] {
      ++count_;
      count_.notify_one();
    };
  }
  /// Waits for one more wake-up than the number of earlier calls.
  void wait() {
    for (int now = count_; now <= waits_; now = count_) count_.wait(now);
    ++waits_;
  }
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
  int waits_ = 0;
};

/// Waits for the next wake-up and takes its item.
template <class T>
Made<T> taken(WakeUpCounter& wake_ups, NumberedFlow<T>& flow) {
  wake_ups.wait();
  return std::move(*flow.take());
}

using Casts = std::vector<std::pair<std::int64_t, std::uint64_t>>;

Plan casts(std::size_t size) {
  return from(Numbers{67})
      .map("roll",
           [](std::int64_t n, Rng& rng) {
             if (rng.chance(0.1)) throw DataError("roll", "lost");
             return std::pair(n, rng());
           })
      .group_by([](std::int64_t n) { return n % 3 == 0; }, 2, size)
      .plan();
}

const FlowOptions kHow{.seed = 5,
                       .shuffle = {true},
                       .rank = 1,
                       .ranks = 2,
                       .epochs = 0,
                       .partial = Partial::wrap,
                       .threads = 2,
                       .max_skipped = 1,
                       .start = {.next = 31, .pending = {7, 29}}};

template <class T>
std::vector<Delivery<T>> first(DataFlow<T>& flow, int count) {
  std::vector<Delivery<T>> items;
  for (; count > 0; --count) items.push_back(*flow.next());
  return items;
}

TEST(NumberedFlow, MatchesFlowInAnyOrder) {
  for (const std::size_t size : {1, 4}) {
    const auto expected = first(*start_flow<Casts>(casts(size), kHow), 200);
    Rng rng{size};
    for (const int makers : {1, 3}) {
      std::vector<std::unique_ptr<WakeUpCounter>> wake_ups;
      std::vector<std::unique_ptr<NumberedFlow<Casts>>> flows;
      for (int i = 0; i < makers; ++i) {
        wake_ups.push_back(std::make_unique<WakeUpCounter>());
        flows.push_back(start_numbered_flow<Casts>(casts(size), kHow, wake_ups.back()->wake()));
      }
      std::vector<std::vector<std::int64_t>> asked(flows.size());
      for (int i = 0; i < 400; ++i) {
        const auto maker = rng.below(flows.size());
        asked[maker].push_back(static_cast<std::int64_t>(rng.below(expected.size())));
        flows[maker]->ask(asked[maker].back());
      }
      for (std::size_t maker = 0; maker < flows.size(); ++maker) {
        // Items arrive in the order in which they were requested.
        for (const auto number : asked[maker]) {
          const auto made = taken(*wake_ups[maker], *flows[maker]);
          ASSERT_TRUE(made.item);
          ASSERT_EQ(made.number, number);
          const auto& right = expected[static_cast<std::size_t>(number)];
          ASSERT_EQ(made.item->value, right.value) << "item " << number;
          ASSERT_EQ(made.item->cursor, right.cursor);
          ASSERT_EQ(made.item->epoch, right.epoch);
          ASSERT_EQ(made.item->progress, right.progress);
          ASSERT_EQ(made.item->number, number);
          if (size == 4) {
            ASSERT_EQ(made.skipped.size() + right.value.size(), 4U);
          }
        }
        EXPECT_FALSE(flows[maker]->take());
        EXPECT_EQ(wake_ups[maker]->count(), std::ssize(asked[maker]))
            << "one wake-up for each item";
      }
    }
  }
}

TEST(NumberedFlow, MakesOnlyRequestedItems) {
  std::atomic<int> read = 0;
  const auto reading = [&](std::int64_t n) {
    ++read;
    return n;
  };
  WakeUpCounter wake_ups;
  const auto flow = start_numbered_flow<std::vector<std::int64_t>>(
      from(Numbers{40}).map(reading).group(4).plan(),
      {.epochs = 0, .partial = Partial::wrap, .threads = 2}, wake_ups.wake());
  EXPECT_FALSE(flow->take());
  flow->ask(3);
  EXPECT_THAT(taken(wake_ups, *flow).item->value, ElementsAre(12, 13, 14, 15));
  EXPECT_EQ(read, 4);
  EXPECT_EQ(flow->epoch_size(), 40);
}

TEST(NumberedFlow, ReportsFailureByNumber) {
  const auto sieve = [](std::int64_t n) {
    if (n == 5) throw DataError("number 5", "is broken");
    if (n == 9) throw std::out_of_range("too heavy");
    return n;
  };
  WakeUpCounter wake_ups;
  const auto flow = start_numbered_flow<std::vector<std::int64_t>>(
      from(Numbers{12}).map("sieve", sieve).group(2).plan(),
      {.epochs = 2, .threads = 2, .on_error = OnError::fail}, wake_ups.wake());
  for (const std::int64_t number : {2, 4, 3, 12, 0}) flow->ask(number);
  const auto failure = [&](std::int64_t number) {
    const auto made = taken(wake_ups, *flow);
    EXPECT_EQ(made.number, number);
    EXPECT_FALSE(made.item);
    return [failure = made.failure] { std::rethrow_exception(failure); };
  };
  EXPECT_THAT(failure(2), ThrowsMessage<DataError>(HasSubstr("number 5: is broken")));
  EXPECT_THAT(failure(4), ThrowsMessage<Error>(HasSubstr("too heavy")));
  EXPECT_THAT(taken(wake_ups, *flow).item->value, ElementsAre(6, 7));
  EXPECT_THAT(failure(12), ThrowsMessage<Error>(HasSubstr("item 12 ")));
  EXPECT_THAT(taken(wake_ups, *flow).item->value, ElementsAre(0, 1));
  EXPECT_THROW(flow->ask(-1), std::invalid_argument);
}

TEST(NumberedFlow, KeepsInFlightWithinLimit) {
  const auto token = std::make_shared<int>();  // each message holds a copy
  std::atomic<long> most = 0;
  const auto holding = [&](std::int64_t) {
    auto copy = token;
    most = std::max<long>(most, token.use_count() - 1);
    return copy;
  };
  WakeUpCounter wake_ups;
  const auto flow = start_numbered_flow<std::vector<std::shared_ptr<int>>>(
      from(Numbers{1000}).map(holding).group(3).plan(),
      {.epochs = 0, .partial = Partial::wrap, .threads = 2, .in_flight = 9}, wake_ups.wake());
  for (std::int64_t number = 0; number < 300; ++number) flow->ask(number);
  while (wake_ups.count() < 3) std::this_thread::yield();
  EXPECT_EQ(wake_ups.count(), 3) << "three groups of three are ready; the other requests wait";
  for (int i = 0; i < 300; ++i) {
    EXPECT_THAT(taken(wake_ups, *flow).item->value, SizeIs(3));
  }
  EXPECT_LE(most, 9 + 3) << "plus one group held by the consumer";
}

TEST(NumberedFlow, StopsDespitePendingRequests) {
  Rng rng{1};
  for (int i = 0; i < 100; ++i) {
    WakeUpCounter wake_ups;
    const auto flow = start_numbered_flow<Casts>(casts(4), kHow, wake_ups.wake());
    for (auto asked = rng.below(60); asked > 0; --asked)
      flow->ask(static_cast<std::int64_t>(rng.below(300)));
    for (auto taken = rng.below(5); taken > 0; --taken) flow->take();
  }
}

TEST(NumberedFlow, StopsDuringSearchForFarNumber) {
  WakeUpCounter wake_ups;
  const auto flow = start_numbered_flow<Casts>(casts(4), kHow, wake_ups.wake());
  flow->ask(2);
  flow->ask(std::int64_t{1} << 60);
  flow->ask(3);
  EXPECT_EQ(taken(wake_ups, *flow).number, 2);
  EXPECT_FALSE(flow->take());
  EXPECT_EQ(flow->report().skipped_reasons.size(),
            static_cast<std::size_t>(flow->report().skipped));
}

TEST(NumberedFlow, AnswersAllRequestsUnderContention) {
  WakeUpCounter wake_ups;
  const auto flow = start_numbered_flow<std::vector<std::int64_t>>(
      from(Numbers{100}).group(1).plan(),
      {.epochs = 0, .partial = Partial::wrap, .threads = 4, .in_flight = 1}, wake_ups.wake());
  for (std::int64_t number = 0; number < 3000; ++number) {
    flow->ask(number);
    flow->ask(number + 1);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(taken(wake_ups, *flow).number, number + i);
  }
}

TEST(NumberedTrainFlow, MatchesTrainFlow) {
  TinyCoco options(30);
  std::ofstream(options.image(5)) << "no JPEG";
  options.max_skipped = 1;
  const auto train = open_train_data(options, {});
  const Share share{1, 2};
  const auto plain = start_train_flow(options, {}, train, 1, share);
  std::map<std::int64_t, std::uint64_t> expected;
  Cursor start;
  for (std::int64_t k = 0; k < 30; ++k) {
    auto item = *plain->next();
    if (k < 6)
      start = item.cursor;
    else
      expected[k - 6] = digest(item.value);
  }
  WakeUpCounter wake_ups[2];
  std::unique_ptr<NumberedFlow<Batch>> flows[2];
  for (int i = 0; i < 2; ++i)
    flows[i] = start_numbered_train_flow(options, {}, train, 1, share, start, wake_ups[i].wake());
  for (std::int64_t k = 23; k >= 0; --k) flows[k % 2]->ask(k);
  for (int i = 0; i < 24; ++i) {
    const auto made = taken(wake_ups[i % 2], *flows[i % 2]);
    EXPECT_EQ(digest(made.item->value), expected.at(made.number)) << made.number;
  }
}

TEST(NumberedGroups, MatchGroupsOfSequentialPlan) {
  const auto plan = from(Numbers{97}).group_by([](std::int64_t n) { return n % 5; }, 5, 3).plan();
  const Order order(97, {}, 3, {true});
  SampleKeys keys(plan);
  const FlowOptions options{.epochs = 0, .partial = Partial::wrap};
  const GroupPlan start(order, keys, options, 3);
  auto walk = start;
  std::vector<PlannedGroup> expected;
  for (int k = 0; k < 20'000; ++k) expected.push_back(walk.next());
  NumberedGroups groups(start);
  const std::atomic<bool> go_on = false;
  Rng rng{1};
  for (int i = 0; i < 300; ++i) {
    const auto number = static_cast<std::int64_t>(rng.below(expected.size()));
    for (auto k = number; k < std::min<std::int64_t>(number + 3, std::ssize(expected)); ++k) {
      const auto found = groups.at(k, go_on);
      const auto& right = expected[static_cast<std::size_t>(k)];
      ASSERT_EQ(found.number, k);
      ASSERT_EQ(found.positions, right.positions);
      ASSERT_EQ(found.cursor, right.cursor);
    }
  }
}

}  // namespace
}  // namespace millrace
