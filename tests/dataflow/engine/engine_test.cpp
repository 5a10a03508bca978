// The engine's guarantees, tested with messages unrelated to detection.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "tests/dataflow/flows.h"

namespace millrace {
namespace {

using testing::drain;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Numbers;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;
using ::testing::UnorderedElementsAreArray;

/// The message of the flows in this file: a number, and a random number drawn by a stage.
struct TestMessage {
  std::int64_t number = 0;
  std::uint64_t random = 0;
  friend bool operator==(const TestMessage&, const TestMessage&) = default;
};
using TestGroup = std::vector<TestMessage>;

/// Sleeps for a random time, so that a flow that does not restore the order fails the test.
TestMessage roll(std::int64_t number, Rng& rng) {
  const TestMessage message{number, rng()};
  std::this_thread::sleep_for(std::chrono::microseconds(rng.below(200)));
  return message;
}

/// Returns a stage that drops about one in `n` samples; 0 = none.
auto drop_one_in(std::uint64_t n) {
  return [n](TestMessage message, Rng& rng) {
    if (n > 0 && rng.below(n) == 0) throw DataError("message", "lost");
    return message;
  };
}

std::size_t parity(std::int64_t number) { return number % 3 == 0; }

std::unique_ptr<DataFlow<TestGroup>> mill(const FlowOptions& options, std::int64_t size = 53,
                                          std::uint64_t drops = 0) {
  return from(Numbers{size})
      .map("roll", roll)
      .map("drop", drop_one_in(drops))
      .group_by(parity, /*groups=*/2, /*size=*/4)
      .map("pass", [](TestGroup group) { return group; })
      .start(options);
}

std::vector<std::int64_t> numbers(const std::vector<TestGroup>& groups) {
  std::vector<std::int64_t> all;
  for (const auto& group : groups)
    for (const auto& message : group) all.push_back(message.number);
  return all;
}

std::vector<std::int64_t> count_to(std::int64_t n, std::int64_t times = 1) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < n; ++i) values.insert(values.end(), times, i);
  return values;
}

std::size_t threads_alive() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Engine, YieldsSameItemsForAnyThreadCount) {
  for (const auto on_error : {OnError::skip, OnError::replace}) {
    FlowOptions options{.seed = 7,
                        .shuffle = {true},
                        .epochs = 3,
                        .threads = 1,
                        .on_error = on_error,
                        .max_skipped = 1};
    const auto expected = drain(*mill(options, 53, 10));
    for (const auto& [threads, in_flight] : {std::pair(2, 0), {8, 0}, {2, 4}, {2, 100}}) {
      options.threads = threads;
      options.in_flight = in_flight;
      EXPECT_EQ(drain(*mill(options, 53, 10)), expected)
          << threads << " threads, " << in_flight << " in flight";
    }
  }
}

TEST(Engine, YieldsEachSampleOncePerEpoch) {
  for (const auto partial : {Partial::keep, Partial::wrap}) {
    const auto all = drain(*mill({.seed = 3, .shuffle = {true}, .epochs = 3, .partial = partial}));
    EXPECT_THAT(numbers(all), UnorderedElementsAreArray(count_to(53, 3)));
  }
}

TEST(Engine, ShufflesEveryEpoch) {
  const auto flow = from(Numbers{20}).start({.seed = 3, .shuffle = {true}, .epochs = 2});
  const auto both = drain(*flow);
  const std::vector first(both.begin(), both.begin() + 20), second(both.begin() + 20, both.end());
  EXPECT_NE(first, count_to(20));
  EXPECT_NE(first, second);
  EXPECT_THAT(first, UnorderedElementsAreArray(second));
}

TEST(Engine, KeepsSourceOrderByDefault) {
  EXPECT_EQ(drain(*from(Numbers{20}).map(roll).start({.threads = 8})).back().number, 19);
  EXPECT_EQ(drain(*from(Numbers{20}).start({})), count_to(20));
}

TEST(Engine, KeepsPartialGroupsAtEpochEnd) {
  const auto flow = mill({.seed = 3, .shuffle = {true}, .epochs = 2, .partial = Partial::keep});
  std::vector<std::int64_t> first_epoch;
  while (auto item = flow->next()) {
    if (item->epoch > 0) break;
    for (const auto& message : item->value) first_epoch.push_back(message.number);
  }
  EXPECT_THAT(first_epoch, UnorderedElementsAreArray(count_to(53)));
}

TEST(Engine, WrapsPartialGroupsIntoNextEpoch) {
  const auto flow = mill({.seed = 3, .shuffle = {true}, .epochs = 0, .partial = Partial::wrap});
  for (int i = 0; i < 60; ++i) EXPECT_THAT(flow->next()->value, SizeIs(4));
}

TEST(Engine, EndsForRankWithoutSamples) {
  EXPECT_THAT(drain(*from(Numbers{1}).start({.rank = 1, .ranks = 2})), IsEmpty());
}

struct Resume : ::testing::TestWithParam<std::tuple<Partial, std::int64_t>> {};

TEST_P(Resume, YieldsSameRemainderAfterEveryBatch) {
  const auto [partial, ranks] = GetParam();
  FlowOptions options{.seed = 11,
                      .shuffle = {true},
                      .rank = ranks - 1,
                      .ranks = ranks,
                      .epochs = 3,
                      .partial = partial,
                      .threads = 2,
                      .max_skipped = 1};
  const auto flow = mill(options, 37, 6);
  std::vector<Delivery<TestGroup>> whole;
  while (auto item = flow->next()) whole.push_back(std::move(*item));
  ASSERT_GT(whole.size(), 9U);
  ASSERT_GT(flow->report().skipped, 0);

  for (std::size_t k = 0; k < whole.size(); ++k) {
    options.start = whole[k].cursor;
    const auto rest = mill(options, 37, 6);
    for (auto i = k + 1; i < whole.size(); ++i) {
      const auto item = rest->next();
      ASSERT_TRUE(item) << "resumed after " << k << ", at " << i;
      ASSERT_EQ(item->value, whole[i].value) << "resumed after " << k << ", at " << i;
      ASSERT_EQ(item->cursor, whole[i].cursor);
      ASSERT_EQ(item->epoch, whole[i].epoch);
      ASSERT_EQ(item->progress, whole[i].progress);
    }
    ASSERT_FALSE(rest->next());
  }
}

INSTANTIATE_TEST_SUITE_P(Engine, Resume,
                         ::testing::Combine(::testing::Values(Partial::keep, Partial::wrap),
                                            ::testing::Values(1, 2)));

TEST(Engine, ReportsProgressInEpochs) {
  const auto flow = from(Numbers{10}).start({.epochs = 2});
  for (int i = 1; i <= 20; ++i) EXPECT_DOUBLE_EQ(flow->next()->progress, i / 10.0);
}

TEST(Engine, RunsWithMinimumInFlight) {
  EXPECT_EQ(numbers(drain(*mill({.epochs = 4, .threads = 2, .in_flight = 4}))).size(), 4U * 53);
}

TEST(Engine, RejectsTooFewInFlight) {
  EXPECT_THAT(
      [&] { mill({.in_flight = 3}); },
      ThrowsMessage<ConfigError>(AllOf(HasSubstr("in_flight = 3"), HasSubstr("4 samples"))));
}

TEST(Engine, KeepsInFlightWithinTickets) {
  std::atomic<int> inside = 0, most = 0;
  const auto flow = from(Numbers{200})
                        .map([&](std::int64_t number) {
                          most = std::max(most.load(), ++inside);
                          return number;
                        })
                        .start({.threads = 8, .in_flight = 5});
  while (inside < 5) std::this_thread::yield();
  while (flow->next()) --inside;
  EXPECT_LE(most, 6);  // an item's ticket is reused while the consumer takes the item
}

/// Throws DataError for multiples of seven.
std::int64_t no_sevens(std::int64_t number) {
  if (number % 7 == 0) throw DataError("message " + std::to_string(number), "is a seven");
  return number;
}

TEST(Faults, AreOmittedAndCountedIfSkipped) {
  const auto flow =
      from(Numbers{20}).map("sieve", no_sevens).start({.threads = 2, .max_skipped = 0.2});
  EXPECT_THAT(drain(*flow),
              ElementsAre(1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19));
  const auto report = flow->report();
  EXPECT_EQ(report.skipped, 3);
  ASSERT_THAT(report.skipped_reasons, SizeIs(3));
  EXPECT_EQ(report.skipped_reasons[1], "epoch 0, sample 7, stage 'sieve': message 7: is a seven");
}

TEST(Faults, FailFlowAboveMaxSkipped) {
  const auto flow =
      from(Numbers{20}).map("sieve", no_sevens).start({.threads = 2, .max_skipped = 0.1});
  for (int i = 0; i < 12; ++i) ASSERT_TRUE(flow->next());
  EXPECT_THAT([&] { flow->next(); }, ThrowsMessage<Error>(::testing::ContainsRegex(
                                         "3 samples of epoch 0 .*message 14: is a seven")));
  EXPECT_FALSE(flow->next());
}

TEST(Faults, AreThrownInOrder) {
  const auto flow = from(Numbers{40})
                        .map([](std::int64_t n, Rng& rng) { return roll(n, rng).number; })
                        .map("sieve", [](std::int64_t n) { return n == 0 ? n : no_sevens(n); })
                        .start({.threads = 8, .on_error = OnError::fail});
  for (int i = 0; i < 7; ++i) EXPECT_EQ(flow->next()->value, i);
  EXPECT_THROW(flow->next(), DataError);
  EXPECT_FALSE(flow->next());
}

TEST(Faults, AreReplacedByNextUsableSample) {
  const auto flow = from(Numbers{16})
                        .map("sieve", no_sevens)
                        .start({.threads = 2, .on_error = OnError::replace, .max_skipped = 0.2});
  EXPECT_THAT(drain(*flow), ElementsAre(1, 1, 2, 3, 4, 5, 6, 8, 8, 9, 10, 11, 12, 13, 15, 15));
  EXPECT_EQ(flow->report().skipped, 3);
}

TEST(Faults, OfOtherTypesReportTheirLocation) {
  for (const int threads : {1, 8}) {
    const auto flow = from(Numbers{40})
                          .map("weigh",
                               [](std::int64_t n) {
                                 if (n == 24) throw std::out_of_range("too heavy");
                                 return n;
                               })
                          .start({.epochs = 0, .threads = threads});
    for (int i = 0; i < 24; ++i) EXPECT_EQ(flow->next()->value, i);
    EXPECT_THAT([&] { flow->next(); },
                ThrowsMessage<Error>("epoch 0, sample 24, stage 'weigh': too heavy"));
    EXPECT_FALSE(flow->next());
  }
}

TEST(Faults, DropGroupIfAfterGroupStage) {
  const auto flow = from(Numbers{12})
                        .group(3)
                        .map("pack",
                             [](std::vector<std::int64_t> group) {
                               if (group[0] == 3) throw DataError("group", "torn");
                               return group[0];
                             })
                        .start({.threads = 2, .max_skipped = 0.25});
  EXPECT_THAT(drain(*flow), ElementsAre(0, 6, 9));
  EXPECT_EQ(flow->report().skipped, 3);
}

TEST(Engine, LeavesNoThreadAfterEarlyStop) {
  { mill({.epochs = 0, .threads = 4})->next(); }
  const auto before = threads_alive();
  Rng rng{1};
  for (int i = 0; i < 200; ++i) {
    const auto flow = mill({.epochs = 0, .threads = 4});
    for (auto taken = rng.below(6); taken > 0; --taken) flow->next();
    std::this_thread::sleep_for(std::chrono::microseconds(rng.below(500)));
  }
  EXPECT_LE(threads_alive(), std::max<std::size_t>(before, 9 + testing::kSanitizerThreads));
}

TEST(Engine, MovesMoveOnlyMessages) {
  const std::vector<std::string> words{"the", "mill", "race"};
  const auto flow =
      from(words)
          .map([](std::string word) { return std::make_unique<std::size_t>(word.size()); })
          .group(2)
          .map([](std::vector<std::unique_ptr<std::size_t>> pair) {
            std::size_t sum = 0;
            for (const auto& length : pair) sum += *length;
            return sum;
          })
          .start({});
  EXPECT_THAT(drain(*flow), ElementsAre(7, 4));
}

/// A sample with a name.
struct Named {
  std::string path;
};
struct NamedSource {
  std::int64_t size() const { return 9; }
  Named operator[](std::int64_t index) const { return {"file " + std::to_string(index)}; }
};

class EngineThatHangs : public ::testing::TestWithParam<int> {};

TEST_P(EngineThatHangs, ReportsStageAndSample) {
  const bool goes_on = GetParam() > 1;  // true if earlier samples still arrive
  std::promise<void> open;
  const auto gate = open.get_future().share();
  std::atomic<bool> hangs = false;
  const auto flow = from(NamedSource{})
                        .map("pass", [](Named named) { return named; })
                        .map("gate",
                             [&](Named named) {
                               if (named.path == "file 3") {
                                 hangs = true;
                                 gate.wait();
                               }
                               return named;
                             })
                        .start({.threads = GetParam()});
  while (!hangs) std::this_thread::yield();
  for (int i = 0; goes_on && i < 3; ++i) EXPECT_TRUE(flow->next());
  const auto work = flow->report().in_work;  // longest-running first
  open.set_value();
  ASSERT_FALSE(work.empty());
  EXPECT_EQ(work[0].stage, "gate");
  EXPECT_EQ(work[0].sample, "file 3");
  EXPECT_GE(work[0].seconds, 0);
  EXPECT_THAT(drain(*flow), SizeIs(goes_on ? 6 : 9));
  EXPECT_THAT(flow->report().in_work, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Threads, EngineThatHangs, ::testing::Values(1, 2));

TEST(Engine, ReportsCountsOfEachStage) {
  const auto flow = mill({.threads = 2});
  drain(*flow);
  const auto report = flow->report();
  ASSERT_THAT(report.stages, SizeIs(6));
  EXPECT_EQ(report.stages[0].name, "read");
  EXPECT_EQ(report.stages[1].name, "roll");
  EXPECT_EQ(report.stages[1].items, 53);
  EXPECT_GT(report.stages[1].busy_s, 53 * 50e-6);
  EXPECT_EQ(report.stages[4].items, 14);
  EXPECT_EQ(report.stages[5].name, "ready");
  EXPECT_EQ(report.stages[5].items, 14);
  for (const auto& stage : report.stages) EXPECT_EQ(stage.waiting, 0) << stage.name;
}

}  // namespace
}  // namespace millrace
