// Several ranks with small batches consume the same samples in each step as one rank with a large
// batch, and a run can be resumed with a different number of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection/pad.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/engine/order.h"
#include "millrace/dataflow/engine/pipeline.h"
#include "tests/dataflow/flows.h"
#include "tests/dataflow/tiny_coco.h"

namespace millrace {
namespace {

using namespace ::testing;
using namespace testing;

constexpr std::int64_t kRanks[] = {1, 2, 3, 4, 8};
constexpr std::int64_t kStep = 24;  // samples over all ranks

/// Pads a batch to this size, as if it contained an image of that size.
Batch pad_to(Batch batch, std::int32_t width, std::int32_t height) {
  auto padded = batch;
  padded.width = width;
  padded.height = height;
  padded.pixels = std::make_shared<std::uint8_t[]>(padded.bytes());
  for (std::size_t i = 0; i < batch.size(); ++i)
    fill_slot({batch.image(i)}, padded.padded_image(i));
  return padded;
}

// Numbers, each with the random number drawn for it.
using Rolls = std::vector<std::pair<std::int64_t, std::uint64_t>>;

/// Starts a flow of numbers with three grouping keys, one of them rare.
std::unique_ptr<DataFlow<Rolls>> rolls(FlowOptions options, std::int64_t rank, std::int64_t ranks,
                                       std::int64_t step = kStep) {
  options.rank = rank;
  options.ranks = ranks;
  const auto key = [](std::int64_t n) { return n % 50 == 0 ? 2 : n % 3 == 0; };
  return from(Numbers{200})
      .map("roll", [](std::int64_t n, Rng& rng) { return std::pair(n, rng()); })
      .group_by(key, 3, static_cast<std::size_t>(step / ranks))
      .start(options);
}

/// Runs the flows of all ranks. next() concatenates their batches by rank and expects equal
/// cursors, epochs, progress and numbers.
template <class Start>
class Together {
 public:
  Together(const Start& start, std::int64_t ranks) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) flows_.push_back(start(rank, ranks));
  }

  auto next() {
    auto all = *flows_.front()->next();
    for (std::size_t rank = 1; rank < flows_.size(); ++rank) {
      auto part = *flows_[rank]->next();
      EXPECT_EQ(part.cursor, all.cursor) << "rank " << rank;
      EXPECT_EQ(part.epoch, all.epoch);
      EXPECT_EQ(part.progress, all.progress);
      EXPECT_EQ(part.number, all.number);
      append(all.value, std::move(part.value));
    }
    return all;
  }

 private:
  template <class T>
  static void append(std::vector<T>& all, std::vector<T> part) {
    all.insert(all.end(), part.begin(), part.end());
  }
  static void append(Batch& all, Batch part) {
    const auto width = std::max(all.width, part.width), height = std::max(all.height, part.height);
    all = pad_to(std::move(all), width, height);
    part = pad_to(std::move(part), width, height);
    const auto own = all.bytes();
    const auto pixels = std::exchange(all.pixels, nullptr);
    all.images.insert(all.images.end(), part.images.begin(), part.images.end());
    std::ranges::move(part.objects, std::back_inserter(all.objects));
    all.pixels.reset(new std::uint8_t[all.bytes()]);
    std::copy_n(pixels.get(), own, all.pixels.get());
    std::copy_n(part.pixels.get(), part.bytes(), all.pixels.get() + own);
  }

  std::vector<decltype(std::declval<Start>()(0, 1))> flows_;
};

const FlowOptions kEndless{
    .seed = 5, .shuffle = {true}, .epochs = 0, .partial = Partial::wrap, .threads = 2};

TEST(Share, YieldsSameStepsForAnyRankCount) {
  const auto start = [](std::int64_t rank, std::int64_t ranks) {
    auto options = kEndless;
    options.threads = static_cast<int>(ranks);
    return rolls(options, rank, ranks);
  };
  for (const auto ranks : kRanks) {
    Together one(start, 1), many(start, ranks);
    for (int k = 0; k < 60; ++k) {
      const auto expected = one.next(), given = many.next();
      ASSERT_EQ(given.value, expected.value) << ranks << " ranks, step " << k;
      ASSERT_EQ(given.cursor, expected.cursor);
      ASSERT_EQ(given.progress, expected.progress);
      ASSERT_EQ(given.number, k);
    }
  }
}

TEST(Share, ResumesWithDifferentRankCount) {
  auto options = kEndless;
  const auto start = [&](std::int64_t rank, std::int64_t ranks) {
    return rolls(options, rank, ranks);
  };
  Together whole(start, 1);
  std::vector<Delivery<Rolls>> expected;
  for (int k = 0; k < 80; ++k) expected.push_back(whole.next());
  Rng rng{1};
  std::size_t k = 0;
  while (k < expected.size()) {
    const auto ranks = kRanks[rng.below(std::size(kRanks))];
    Together some(start, ranks);
    for (auto steps = rng.between(1, 15); steps > 0 && k < expected.size(); --steps, ++k) {
      const auto given = some.next();
      ASSERT_EQ(given.value, expected[k].value) << ranks << " ranks, step " << k;
      ASSERT_EQ(given.cursor, expected[k].cursor);
      ASSERT_EQ(given.epoch, expected[k].epoch);
      options.start = given.cursor;
    }
  }
}

TEST(Share, ResumesWithDifferentStepSize) {
  auto options = kEndless;
  const auto first = rolls(options, 0, 1, 48);
  std::map<std::int64_t, int> seen;
  for (int k = 0; k < 7; ++k) {
    const auto item = *first->next();
    for (const auto& roll : item.value) ++seen[roll.first];
    options.start = item.cursor;
  }
  ASSERT_GT(options.start.pending.size(), 24U) << "some must fill several smaller groups";
  options.epochs = 3;
  const auto rest = rolls(options, 0, 1, 6);
  std::vector<Delivery<Rolls>> items;
  while (auto item = rest->next()) {
    for (const auto& roll : item->value) ++seen[roll.first];
    items.push_back(std::move(*item));
  }
  // Also resumes from cursors with samples that wait for their group.
  for (std::size_t k = 0; k + 1 < 12; ++k) {
    options.start = items[k].cursor;
    EXPECT_EQ(rolls(options, 0, 1, 6)->next()->value, items[k + 1].value) << "after step " << k;
  }
  EXPECT_THAT(seen, AllOf(SizeIs(200), Each(Pair(_, 3))));
}

TEST(Share, YieldsEachSampleOncePerEpoch) {
  for (const auto partial : {Partial::keep, Partial::wrap})
    for (const auto ranks : kRanks) {
      std::map<std::int64_t, int> seen;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        auto options = kEndless;
        options.epochs = 3;
        options.partial = partial;
        for (const auto& batch : drain(*rolls(options, rank, ranks))) {
          EXPECT_LE(std::ssize(batch), kStep / ranks);
          for (const auto& roll : batch) ++seen[roll.first];
        }
      }
      EXPECT_THAT(seen, AllOf(SizeIs(200), Each(Pair(_, 3))));
    }
}

TEST(Share, YieldsNoBatchBeyondLastGroup) {
  const auto start = [](std::int64_t rank) {
    return from(Numbers{10}).group(2).start({.rank = rank, .ranks = 4, .threads = 2});
  };
  using Pair = std::vector<std::int64_t>;
  EXPECT_THAT(drain(*start(0)), ElementsAre(Pair{0, 1}, Pair{8, 9}));
  EXPECT_THAT(drain(*start(1)), ElementsAre(Pair{2, 3}));
  EXPECT_THAT(drain(*start(3)), ElementsAre(Pair{6, 7}));
}

TEST(Share, ReadsEachKeyOnce) {
  struct Counted {
    std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
    std::int64_t size() const { return 40; }
    std::int64_t operator[](std::int64_t index) const { return index; }
    std::int64_t about(std::int64_t index) const {
      ++*asked;
      return index;
    }
  };
  const Counted source;
  const auto flow =
      from(source).group_by([](std::int64_t n) { return n % 2; }, 2, 4).start({.epochs = 5});
  EXPECT_THAT(drain(*flow), SizeIs(50));
  EXPECT_EQ(*source.asked, 40);
  EXPECT_THAT(drain(*from(source).group(4).start({})), SizeIs(10));
  EXPECT_EQ(*source.asked, 40) << "a single group needs no keys";
}

/// A source that cannot read every fifth sample.
struct Torn {
  std::int64_t size() const { return 20; }
  std::int64_t operator[](std::int64_t index) const {
    if (index % 5 == 4) throw DataError("leaf " + std::to_string(index), "torn");
    return index;
  }
};

TEST(Share, SkipsSamplesWhoseKeyIsUnavailable) {
  const auto flow =
      from(Torn{}).group_by([](std::int64_t n) { return n % 2; }, 2, 5).start({.max_skipped = 0.2});
  std::multiset<std::int64_t> seen;
  for (const auto& batch : drain(*flow)) seen.insert(batch.begin(), batch.end());
  EXPECT_THAT(seen, SizeIs(16));
  EXPECT_THAT(flow->report().skipped_reasons,
              ElementsAre(HasSubstr("leaf 4: torn"), HasSubstr("leaf 9: torn"),
                          HasSubstr("leaf 14: torn"), HasSubstr("leaf 19: torn")));
}

TEST(Share, ReportsSampleWithInvalidKey) {
  const auto flow = from(Numbers{20})
                        .group_by([](std::int64_t n) { return n == 13 ? 7 : 0; }, 2, 4)
                        .start({.threads = 2});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(flow->next()->value, SizeIs(4));
  EXPECT_THAT([&] { flow->next(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("sample 13"), HasSubstr("key 7"), HasSubstr("2 groups"))));
  EXPECT_FALSE(flow->next());
}

TEST(Share, RejectsInvalidRanksAndCursors) {
  const auto start = [](std::int64_t rank, std::int64_t ranks) {
    return from(Numbers{4}).start({.rank = rank, .ranks = ranks});
  };
  for (const auto ranks : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{5}, INT64_MAX})
    EXPECT_THAT([&] { start(5, ranks); }, ThrowsMessage<ConfigError>(HasSubstr("ranks")));
  EXPECT_THROW(start(-1, 2), ConfigError);
  for (const auto& bad : {Cursor{-1, {}}, Cursor{9, {9}}, Cursor{9, {-1}}, Cursor{9, {3, 3}},
                          Cursor{9, {4, 3}}, Cursor{INT64_MAX, {}}})
    EXPECT_THAT([&] { from(Numbers{4}).start({.start = bad}); },
                ThrowsMessage<ConfigError>(HasSubstr("cursor")));
}

// Samples that are lost.

/// Returns a stage that throws DataError for numbers that `is_lost` selects.
auto losing(auto is_lost) {
  return [=](std::int64_t n) {
    if (is_lost(n)) throw DataError("number " + std::to_string(n), "cannot be used");
    return n;
  };
}
bool is_ten(std::int64_t n) { return n % 10 == 0; }

/// Returns a stage that throws DataError for groups that `is_torn` selects.
auto tearing(auto is_torn) {
  return [=](std::vector<std::int64_t> group) {
    if (is_torn(group)) throw DataError("sack", "torn");
    return group;
  };
}

std::unique_ptr<DataFlow<std::vector<std::int64_t>>> sieved(OnError on_error, std::int64_t rank,
                                                            std::int64_t ranks, std::size_t size) {
  auto options = kEndless;
  options.rank = rank;
  options.ranks = ranks;
  options.on_error = on_error;
  options.max_skipped = 1;
  return from(Numbers{60}).map("sieve", losing(is_ten)).group(size).start(options);
}

TEST(LostSamples, ShrinkOnlyTheirBatch) {
  const auto flow = sieved(OnError::skip, 0, 1, 4);
  std::multiset<std::int64_t> seen;
  std::size_t smaller = 0;
  for (int k = 0; k < 15; ++k) {
    const auto item = *flow->next();
    EXPECT_EQ(item.number, k);
    EXPECT_EQ(item.cursor, (Cursor{4 * (k + 1), {}}));
    smaller += 4 - item.value.size();
    seen.insert(item.value.begin(), item.value.end());
  }
  EXPECT_EQ(smaller, 6U);
  EXPECT_THAT(seen, SizeIs(54));
  EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), 54U) << "each at most once an epoch";
}

TEST(LostSamples, LeaveNoEmptyBatchIfEpochsWrap) {
  const auto flow = sieved(OnError::skip, 0, 1, 1);
  const Order order(60, {}, kEndless.seed, kEndless.shuffle);
  for (int k = 0; k < 180; ++k) {
    const auto item = *flow->next();
    EXPECT_EQ(item.number, k);
    std::int64_t ahead = 0;
    while (order.turn(k, ahead).sample % 10 == 0) ++ahead;
    EXPECT_THAT(item.value, ElementsAre(order.turn(k, ahead).sample));
  }
  EXPECT_GE(flow->report().skipped, 18);
}

TEST(LostSamples, AreCountedOncePerEpoch) {
  for (const auto on_error : {OnError::skip, OnError::replace})
    for (const std::size_t size : {1, 4}) {
      std::atomic<int> met = 0;
      const auto flow = from(Numbers{24})
                            .map("sieve", losing([&](std::int64_t n) {
                                   if (n % 4 != 0) ++met;
                                   return n % 4 != 0;
                                 }))
                            .group(size)
                            .start({.shuffle = {true},
                                    .epochs = 3,
                                    .partial = Partial::wrap,
                                    .on_error = on_error,
                                    .max_skipped = 1});
      drain(*flow);
      const auto report = flow->report();
      EXPECT_EQ(report.skipped, 3 * 18);
      EXPECT_GT(met, 3 * 18) << "lost samples are also drawn as replacements";
      const auto& reasons = report.skipped_reasons;
      std::set<std::string> numbers;
      for (const auto& reason : reasons) numbers.insert(reason.substr(reason.find("number")));
      EXPECT_EQ(numbers.size(), reasons.size()) << "each sample must be warned about once";
    }
}

TEST(LostSamples, OfFailedGroupsAreCountedOnce) {
  const auto flow = from(Numbers{12})
                        .group(3)
                        .map("pack", tearing([](const auto& group) { return group.back() < 6; }))
                        .start({.epochs = 1, .partial = Partial::wrap, .max_skipped = 1});
  EXPECT_THAT(drain(*flow), SizeIs(4));
  EXPECT_EQ(flow->report().skipped, 6);
}

TEST(LostSamples, DropTheirBatchIfEpochsDoNotWrap) {
  const auto flow = from(Numbers{6})
                        .map("lose", losing([](std::int64_t n) { return n == 2 || n == 3; }))
                        .group(2)
                        .start({.max_skipped = 1});
  EXPECT_EQ(flow->next()->number, 0);
  EXPECT_EQ(flow->next()->number, 2);
  EXPECT_FALSE(flow->next());
}

TEST(LostSamples, ReplaceFailedGroupsIfEpochsWrap) {
  auto options = kEndless;
  options.shuffle = {};
  // Few samples are in flight, so the current number of skipped samples is known.
  options.in_flight = 2;
  options.max_skipped = 1;
  const auto flow = from(Numbers{8})
                        .group(2)
                        .map("pack", tearing([](const auto& pair) { return pair[0] == 2; }))
                        .start(options);
  using Pair = std::vector<std::int64_t>;
  EXPECT_THAT(drain(*flow, 4), ElementsAre(Pair{0, 1}, Pair{3}, Pair{4, 5}, Pair{6, 7}));
  EXPECT_EQ(flow->report().skipped, 2);
}

TEST(LostSamples, AreReplacedEquallyForAnyRankCount) {
  for (const std::int64_t ranks : {2, 4}) {
    const auto start = [](std::int64_t rank, std::int64_t of) {
      return sieved(OnError::replace, rank, of, static_cast<std::size_t>(4 / of));
    };
    Together one(start, 1), many(start, ranks);
    for (int k = 0; k < 40; ++k) EXPECT_EQ(many.next().value, one.next().value);
  }
}

TEST(LostSamples, FailFlowIfAllAreLost) {
  auto options = kEndless;
  options.max_skipped = 1000;
  const auto flow = from(Numbers{9})
                        .map("lose", losing([](std::int64_t) { return true; }))
                        .group(2)
                        .start(options);
  EXPECT_THAT([&] { flow->next(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("the next 8"), HasSubstr("unusable"))));
  EXPECT_FALSE(flow->next());
}

TEST(LostSamples, FailTheirBatchIfConfigured) {
  for (const int threads : {1, 8}) {
    const auto flow = from(Numbers{40})
                          .map("sieve", losing([](std::int64_t n) { return n > 0 && is_ten(n); }))
                          .group(4)
                          .start({.threads = threads, .on_error = OnError::fail});
    EXPECT_THAT(flow->next()->value, ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(flow->next()->value, SizeIs(4));
    EXPECT_THROW(flow->next(), DataError);
    EXPECT_FALSE(flow->next());
  }
}

TEST(Filter, FillsBatchesIfDirectlyAfterSource) {
  for (const std::int64_t ranks : {1, 2}) {
    std::multiset<std::int64_t> seen;
    std::int64_t filtered = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto flow = from(Numbers{50})
                            .filter([](std::int64_t n) { return n % 3 == 0; })
                            .filter([](std::int64_t n) { return n % 2 == 0; })
                            .group(2)
                            .start({.rank = rank, .ranks = ranks, .epochs = 4});
      for (const auto& batch : drain(*flow)) seen.insert(batch.begin(), batch.end());
      filtered += flow->report().filtered;
    }
    EXPECT_THAT(seen, SizeIs(4 * 9));
    EXPECT_EQ(filtered, 4 * 41);
  }
}

TEST(Filter, ShrinksBatchesIfAfterOtherStage) {
  const auto flow = from(Numbers{12})
                        .map([](std::int64_t n) { return n; })
                        .filter([](std::int64_t n) { return n % 3 != 0; })
                        .group(3)
                        .start({});
  EXPECT_THAT(drain(*flow), Each(SizeIs(2)));
}

// Detection flows.

auto train_flows(const DataOptions& options, const Cursor& start = {}) {
  return [options, start, split = open_split(options, options.train)](std::int64_t rank,
                                                                      std::int64_t ranks) {
    auto own = options;
    own.batch_size = options.batch_size / ranks;
    return train_flow(own, {}, 1, {rank, ranks}, start);
  };
}

TEST(TrainFlow, YieldsSameStepsForAnyRankCount) {
  TinyCoco options(50);
  options.batch_size = kStep;
  const auto start = train_flows(options);
  Together one(start, 1);
  std::vector<Delivery<Batch>> expected;
  for (int k = 0; k < 8; ++k) expected.push_back(one.next());
  for (const auto ranks : kRanks) {
    Together many(start, ranks);
    for (const auto& step : expected) {
      const auto given = many.next();
      ASSERT_EQ(digest(given.value), digest(step.value)) << ranks << " ranks";
      ASSERT_EQ(given.cursor, step.cursor);
    }
    Together rest(train_flows(options, expected[4].cursor), ranks);
    for (std::size_t k = 5; k < expected.size(); ++k)
      ASSERT_EQ(digest(rest.next().value), digest(expected[k].value)) << ranks << " ranks";
  }
}

TEST(TrainFlow, YieldsSamePhotosForAnyRankCount) {
  MILLRACE_NEEDS_DATA("coco_mini");
  auto options = coco_mini({120, 200}, 300);
  options.batch_size = 4;
  const auto start = train_flows(options);
  Together one(start, 1), two(start, 2), four(start, 4);
  for (int k = 0; k < 12; ++k) {
    const auto expected = digest(one.next().value);
    ASSERT_EQ(digest(two.next().value), expected) << "step " << k;
    ASSERT_EQ(digest(four.next().value), expected) << "step " << k;
  }
}

TEST(TrainFlow, SkipsBrokenPhotosForAnyRankCount) {
  TinyCoco options(24);
  std::filesystem::resize_file(options.image(3), std::filesystem::file_size(options.image(3)) / 2);
  std::ofstream(options.image(11)) << "no JPEG";
  options.max_skipped = 1;
  for (const std::int64_t ranks : {1, 2, 4}) {
    options.batch_size = 4 / ranks;
    std::vector<std::unique_ptr<DataFlow<Batch>>> flows;
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      flows.push_back(train_flow(options, {}, 1, {rank, ranks}));
    std::map<std::int64_t, int> seen;
    Cursor cursor;
    for (int k = 0; k < 5; ++k) {  // within one epoch
      for (const auto& flow : flows) {
        const auto item = *flow->next();
        EXPECT_EQ(item.number, k);
        EXPECT_GE(item.value.size(), 1U);
        for (const auto& image : item.value.images) ++seen[image.image_id];
        cursor = item.cursor;
      }
    }
    ASSERT_LE(cursor.next, 23);
    EXPECT_FALSE(seen.contains(103) || seen.contains(111));
    // With batches of one image, an image that replaces a lost one appears twice.
    if (ranks == 4) continue;
    for (const auto& [id, times] : seen) EXPECT_EQ(times, 1) << id << " of " << ranks << " ranks";
  }
}

TEST(EvalFlow, CoversEachImageOnceAcrossRanks) {
  TinyCoco options(23);
  std::ofstream(options.image(5)) << "no JPEG";
  const auto split = open_split(options, options.val);
  for (const std::int64_t batch : {1, 2, 3})
    for (const auto ranks : kRanks) {
      options.test_batch_size = batch;
      std::multiset<std::int64_t> ids;
      std::int64_t skipped = 0;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto flow = start_eval_flow(options, split, {rank, ranks});
        for (const auto& given : drain(*flow))
          for (const auto& image : given.images) ids.insert(image.image_id);
        skipped += flow->report().skipped;
      }
      EXPECT_THAT(ids, SizeIs(22));
      EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 22U);
      EXPECT_EQ(skipped, 1);
    }
}

}  // namespace
}  // namespace millrace
