// Filters, mixes and caches, and memory limits in bytes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "millrace/base/errors.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "tests/dataflow/flows.h"
#include "tests/support/thrown.h"

namespace millrace {
namespace {

using testing::drain;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::Numbers;
using ::testing::SizeIs;

/// A number and the numbers that were mixed into it.
struct Blend {
  std::int64_t number = 0;
  std::vector<std::int64_t> others;
  friend bool operator==(const Blend&, const Blend&) = default;
};

Blend blend(std::int64_t number) { return {number, {}}; }
std::size_t three(const Blend&, Rng&) { return 3; }
Blend pour(Blend blend, const std::vector<Blend>& others, Rng&) {
  for (const auto& other : others) blend.others.push_back(other.number);
  return blend;
}

TEST(Filter, PassesMatchesAndCountsOthers) {
  const auto flow = from(Numbers{100})
                        .filter([](std::int64_t n) { return n % 3 == 0; })
                        .start({.epochs = 2, .threads = 2});
  EXPECT_THAT(drain(*flow), SizeIs(2 * 34));
  EXPECT_EQ(flow->report().filtered, 2 * 66);
  EXPECT_EQ(flow->report().skipped, 0);
}

TEST(Filter, FailsIfNothingPasses) {
  const auto nothing = [](std::int64_t) { return false; };
  EXPECT_THAT(testing::message_of(
                  [&] { drain(*from(Numbers{10}).filter(nothing).group(4).start({.epochs = 0})); }),
              HasSubstr("for two epochs"));
}

TEST(Filter, FillsBatchesAcrossEpochs) {
  const auto flow = from(Numbers{50})
                        .filter([](std::int64_t n) { return n == 7; })
                        .group(16)
                        .start({.shuffle = {true}, .epochs = 0, .partial = Partial::wrap});
  EXPECT_THAT(flow->next()->value, SizeIs(16));
}

TEST(Mix, YieldsSameItemsForAnyThreadCount) {
  const auto start = [](int threads, Cursor cursor) {
    return from(Numbers{40})
        .map("blend", blend)
        .mix("pour", three, pour)
        .mix("pour again", three, pour)
        .group(4)
        .start({.seed = 2, .shuffle = {true}, .epochs = 3, .threads = threads, .start = cursor});
  };
  const auto expected = drain(*start(1, {}));
  for (const int threads : {2, 8}) EXPECT_EQ(drain(*start(threads, {})), expected);
  auto whole = start(2, {});
  Cursor cursor;
  for (int i = 0; i < 13; ++i) cursor = whole->next()->cursor;
  EXPECT_EQ(drain(*start(2, cursor)), drain(*whole));
}

TEST(Mix, DrawsPartnersFromWholeSource) {
  const auto all = drain(*from(Numbers{20})
                              .map("blend", blend)
                              .mix("pour", three, pour)
                              .start({.shuffle = {true}, .epochs = 20}));
  std::map<std::int64_t, int> seen;
  for (const auto& one : all) {
    ASSERT_THAT(one.others, SizeIs(3));
    for (const auto other : one.others) ++seen[other];
  }
  ASSERT_EQ(seen.size(), 20U);
  for (const auto& [number, times] : seen) EXPECT_NEAR(times, 60, 35) << number;
}

/// Returns a plan of numbers, a stage that multiplies by ten, and a mix whose partners are the
/// output of the stage `made_by`.
Plan tenfold(const std::string& made_by) {
  auto plan = plan_of(std::make_shared<const Numbers>(20));
  plan.stages.push_back(source_stage(std::make_shared<const Numbers>(20)));
  plan.stages.push_back(map_stage<std::int64_t>("blend", blend));
  plan.stages.push_back(map_stage<Blend>("ten", [](Blend one) {
    return Blend{10 * one.number, {}};
  }));
  plan.stages.push_back(mix_stage<Blend>("pour", three, pour));
  std::get<Mix>(plan.stages.back().work).made_by = made_by;
  return plan;
}

TEST(Mix, TakesPartnersFromNamedStage) {
  for (const std::string made_by : {"blend", ""}) {
    const auto flow = start_flow<Blend>(tenfold(made_by), {.epochs = 3});
    std::int64_t largest = 0;
    for (const auto& one : drain(*flow))
      for (const auto other : one.others) largest = std::max(largest, other);
    EXPECT_EQ(largest, made_by.empty() ? 190 : 19);
  }
}

TEST(Stages, PassInputThroughAfterLastEpoch) {
  auto plan = tenfold("");
  plan.stages[2].until = 2;
  plan.stages[3].until = 1;
  const auto flow = start_flow<Blend>(std::move(plan), {.epochs = 3});
  const auto all = drain(*flow);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto epoch = i / 20;
    EXPECT_EQ(all[i].number, static_cast<std::int64_t>(i % 20) * (epoch < 2 ? 10 : 1)) << i;
    EXPECT_THAT(all[i].others, SizeIs(epoch < 1 ? 3 : 0)) << i;
  }
}

TEST(Stages, RejectUntilIfOutputIsNeeded) {
  auto plan = tenfold("");
  plan.stages[1].until = 1;
  EXPECT_THAT(testing::message_of([&] { start_flow<Blend>(std::move(plan), {}); }),
              HasSubstr("'blend' cannot end at epoch 1 (until)"));
}

TEST(Mix, ReplacesUnusablePartners) {
  const auto odd_is_broken = [](std::int64_t number) {
    if (number % 2 == 1) throw DataError("number", "odd");
    return blend(number);
  };
  const auto flow = from(Numbers{20})
                        .map("read on", odd_is_broken)
                        .mix("pour", three, pour)
                        .start({.epochs = 2, .max_skipped = 1});
  for (const auto& one : drain(*flow))
    for (const auto other : one.others) EXPECT_EQ(other % 2, 0);
  EXPECT_EQ(flow->report().skipped, 2 * 10)
      << "each broken sample is counted once, not as a partner";
}

TEST(Mix, FailsIfNoPartnerIsUsable) {
  const auto only_first = [](std::int64_t n) { return n == 0; };
  const auto flow = from(Numbers{100'000})
                        .filter(only_first)
                        .map("blend", blend)
                        .mix("pour", three, pour)
                        .start({.on_error = OnError::fail});
  EXPECT_THAT(testing::message_of([&] { flow->next(); }),
              ::testing::ContainsRegex("stage 'pour'.*can be mixed in.*filtered out"));
}

/// A cache of unlimited size.
class Store {
 public:
  std::optional<std::int64_t> find(std::int64_t sample) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(sample);
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(std::int64_t sample, std::int64_t value) {
    const std::lock_guard lock(mutex_);
    kept_[sample] = value;
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::int64_t> kept_;
};

TEST(Cache, ComputesEachSampleOnce) {
  std::atomic<int> made = 0;
  const auto start = [&](bool cached) {
    auto square = [&made](std::int64_t n) {
      ++made;
      return n * n;
    };
    auto pipeline = from(Numbers{30}).map("square", square);
    if (cached) pipeline = std::move(pipeline).cache(std::make_shared<Store>());
    return std::move(pipeline)
        .map("dice", [](std::int64_t n, Rng& rng) { return n + std::int64_t(rng() % 1000); })
        .start({.shuffle = {true}, .epochs = 5, .threads = 2});
  };
  const auto plain = drain(*start(false));
  EXPECT_EQ(made.exchange(0), 150);
  EXPECT_EQ(drain(*start(true)), plain);
  EXPECT_LE(made, 30 + 8) << "plus a few that were needed again before they were cached";
}

TEST(Cache, RejectsRandomStagesAndSecondCache) {
  const auto store = std::make_shared<Store>();
  const auto dice = [](std::int64_t n, Rng&) { return n; };
  EXPECT_THAT(
      testing::message_of([&] { from(Numbers{3}).map("dice", dice).cache(store).start({}); }),
      HasSubstr("random draws of 'dice'"));
  EXPECT_THAT(testing::message_of([&] { from(Numbers{3}).cache(store).cache(store).start({}); }),
              HasSubstr("one cache"));
}

TEST(Repeats, RejectInvalidValues) {
  const auto start = [](std::vector<double> repeats) {
    Plan plan = from(Numbers{3}).plan();
    plan.repeats = std::move(repeats);
    return testing::message_of([&] { start_flow<std::int64_t>(std::move(plan), {}); });
  };
  EXPECT_THAT(start({1, 2}), HasSubstr("3 samples has 2 repeats"));
  EXPECT_THAT(start({1, -2, 1}), HasSubstr("sample 1 cannot occur -2 times"));
  EXPECT_THAT(start({0, 0, 0.2}), HasSubstr("less than one"));
}

/// A message that counts as 1000 bytes; `alive` is the number of existing bricks.
struct Brick {
  explicit Brick(std::atomic<int>& alive) : alive_(&alive) { ++*alive_; }
  Brick(Brick&& other) noexcept : alive_(std::exchange(other.alive_, nullptr)) {}
  Brick& operator=(Brick&&) = delete;
  ~Brick() {
    if (alive_) --*alive_;
  }

 private:
  std::atomic<int>* alive_;
};

/// A message that is turned into a Brick and whose expected size is known in advance.
struct BrickPlan {
  std::int64_t number = 0;
  friend std::size_t expected_bytes(const BrickPlan&) { return 1000; }
};

}  // namespace

template <>
struct MessageBytes<Brick> {
  static std::size_t get(const Brick&) { return 1000; }
};
template <>
struct MessageBytes<BrickPlan> {
  static std::size_t get(const BrickPlan&) { return 0; }
};

namespace {

TEST(Tickets, LimitMemoryOnceSizeIsKnown) {
  std::atomic<int> alive = 0, most = 0;
  const auto lay = [&](std::int64_t) {
    Brick brick(alive);
    most = std::max<int>(most, alive);
    return brick;
  };
  const auto flow = from(Numbers{2000})
                        .map("lay", lay)
                        .start({.threads = 2, .in_flight = 64, .in_flight_bytes = 10'000});
  // Skips the messages that were sent before the first size was known.
  for (int i = 0; i < 100; ++i) flow->next();
  most = 0;
  for (int i = 0; i < 1800; ++i) {
    flow->next();
    most = std::max<int>(most, alive);
  }
  EXPECT_LE(most, 10 + 2) << "ten in flight, and one held by each thread";
}

/// A source that knows the sizes of its bricks in advance.
struct Plans {
  std::int64_t count = 0;
  std::int64_t size() const { return count; }
  BrickPlan operator[](std::int64_t number) const { return {number}; }
};

TEST(Tickets, LimitMemoryForKnownSizes) {
  std::atomic<int> alive = 0, most = 0;
  const auto lay = [&](BrickPlan) {
    Brick brick(alive);
    most = std::max<int>(most, alive);
    return brick;
  };
  const auto flow = from(Plans{500})
                        .map("lay", lay)
                        .start({.threads = 8, .in_flight = 64, .in_flight_bytes = 10'000});
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // while the consumer takes nothing
  EXPECT_LE(most, 10);
  while (flow->next()) continue;
  EXPECT_LE(most, 10 + 8) << "ten in flight, and one held by each thread";
}

/// The actual size of a message replaces its expected size.
TEST(Tickets, AreReturnedIfMessagesAreSmall) {
  std::atomic<int> laid = 0;
  const auto flow = from(Plans{64})
                        .map("lay", [&](BrickPlan) { return std::int64_t{++laid}; })
                        .start({.threads = 2, .in_flight = 64, .in_flight_bytes = 10'000});
  while (laid < 60) std::this_thread::yield();  // while the consumer takes nothing
  EXPECT_THAT(drain(*flow), SizeIs(64));
}

TEST(Tickets, AllowOneGroupAboveMemoryLimit) {
  const auto flow = from(Plans{64})
                        .map("number", [](BrickPlan plan) { return plan.number; })
                        .group(8)
                        .start({.epochs = 8, .threads = 4, .in_flight_bytes = 1});
  EXPECT_THAT(drain(*flow), Each(SizeIs(8)));
}

TEST(Tickets, NeverStarveGroups) {
  const auto flow = from(Numbers{64})
                        .group_by([](std::int64_t n) { return std::size_t(n % 4); }, 4, 8)
                        .start({.shuffle = {true}, .epochs = 8, .in_flight_bytes = 1});
  EXPECT_THAT(drain(*flow), Each(SizeIs(8)));
}

}  // namespace
}  // namespace millrace
