// Sources and the views that combine them, alone and at the start of a flow.
#include "millrace/dataflow/engine/source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "millrace/dataflow/engine/pipeline.h"
#include "tests/dataflow/flows.h"

namespace millrace {
namespace {

using testing::drain;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

/// Returns a source of `count` consecutive numbers from `first`.
SourcePtr<std::int64_t> numbers(std::int64_t count, std::int64_t first = 0) {
  return generate(count, [first](std::int64_t i) { return first + i; });
}

template <class T>
std::vector<T> all_of(const SourcePtr<T>& source) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < source->size(); ++i) values.push_back((*source)[i]);
  return values;
}

FlowOptions shuffled(std::int64_t epochs, int threads = 2) {
  return {.seed = 3, .shuffle = {true}, .epochs = epochs, .threads = threads};
}

/// Counts how often each value occurs in each of the first `epochs` epochs of a flow over `source`.
template <class T>
std::vector<std::map<T, std::int64_t>> counts_by_epoch(const SourcePtr<T>& source, int epochs) {
  std::vector<std::map<T, std::int64_t>> counts(static_cast<std::size_t>(epochs));
  const auto flow = from(source).start(shuffled(epochs));
  while (const auto item = flow->next())
    ++counts[static_cast<std::size_t>(item->epoch)][item->value];
  return counts;
}

TEST(Source, ReadsListsAndFunctions) {
  EXPECT_THAT(all_of(list<std::string>({"a", "b"})), ElementsAre("a", "b"));
  EXPECT_THAT(all_of(generate(3, [](std::int64_t i) { return i * i; })), ElementsAre(0, 1, 4));
  EXPECT_THAT(list<int>({})->repeats(), IsEmpty());
  EXPECT_THROW(generate(-1, [](std::int64_t i) { return i; }), std::invalid_argument);
}

TEST(Concat, ContainsEverySampleOnce) {
  const auto all = concat<std::int64_t>({numbers(3), numbers(0), numbers(5, 10), numbers(1, 20)});
  EXPECT_THAT(all_of(all), ElementsAre(0, 1, 2, 10, 11, 12, 13, 14, 20));
  EXPECT_THAT(all->repeats(), IsEmpty());
  for (const auto& epoch : counts_by_epoch(all, 3)) {
    EXPECT_EQ(epoch.size(), 9U);
    for (const auto& [value, count] : epoch) EXPECT_EQ(count, 1) << value;
  }
  EXPECT_THROW(concat<int>({}), std::invalid_argument);
}

TEST(Concat, KeepsRepeatsOfEachSource) {
  EXPECT_THAT(concat<std::int64_t>({repeat(numbers(2), 3), numbers(1)})->repeats(),
              ElementsAre(3, 3, 1));
}

TEST(Mix, DrawsFromSourcesByWeight) {
  const std::vector<double> weights = {0.5, 0.3, 0, 2.7};
  const auto mixed = mix<std::int64_t>(
      {numbers(7), numbers(400, 1000), numbers(50, 2000), numbers(90, 3000)}, weights);
  constexpr double kTurns = 7 + 400 + 50 + 90;
  for (const auto& epoch : counts_by_epoch(mixed, 5)) {
    std::vector<std::int64_t> of_source(4);
    for (const auto& [value, count] : epoch)
      of_source[static_cast<std::size_t>(value / 1000)] += count;
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_LE(std::abs(static_cast<double>(of_source[k]) - kTurns * weights[k] / 3.5), 1.0) << k;
    EXPECT_EQ(of_source[2], 0);
    for (std::int64_t value = 0; value < 7; ++value)  // also evenly within a source
      EXPECT_NEAR(static_cast<double>(epoch.at(value)), kTurns / 7 / 7, 1.0);
  }
}

TEST(Mix, RejectsInvalidWeights) {
  const auto mixed = [](std::vector<double> weights) {
    return mix<std::int64_t>({numbers(3), numbers(0)}, weights);
  };
  for (const auto& [weights, why] :
       std::vector<std::pair<std::vector<double>, const char*>>{{{1}, "2 sources have 1 weights"},
                                                                {{0, 0}, "all weights"},
                                                                {{1, 1}, "source 2 of a mix"},
                                                                {{-1, 1}, "weight -1"},
                                                                {{std::nan(""), 1}, "weight nan"}})
    EXPECT_THAT(([&, &given = weights] { mixed(given); }),
                ThrowsMessage<std::invalid_argument>(HasSubstr(why)));
  EXPECT_EQ(mixed({1, 0})->size(), 3);
}

TEST(Zip, PairsSamplesByIndex) {
  const auto pairs = zip(numbers(3), list<std::string>({"a", "b", "c"}));
  EXPECT_THAT(all_of(pairs), ElementsAre(std::pair(0, "a"), std::pair(1, "b"), std::pair(2, "c")));
  EXPECT_THAT(zip(repeat(numbers(2), 2), numbers(2))->repeats(), ElementsAre(2, 2));
  EXPECT_THAT([] { zip(numbers(2), numbers(3)); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("2 and 3 samples")));
  EXPECT_THROW(zip(numbers(2), repeat(numbers(2), 2)), std::invalid_argument);
}

TEST(Select, KeepsMatchesAndTheirRepeats) {
  const auto odd = [](std::int64_t i) { return i % 2 == 1; };
  EXPECT_THAT(all_of(select(numbers(7), odd)), ElementsAre(1, 3, 5));
  EXPECT_THAT(select(repeated(numbers(4), {1, 2, 3, 4}), odd)->repeats(), ElementsAre(2, 4));
  EXPECT_THROW(subset(numbers(3), {3}), std::invalid_argument);
}

TEST(Take, ReturnsFirstSamples) {
  EXPECT_THAT(all_of(take(numbers(7), 3)), ElementsAre(0, 1, 2));
  EXPECT_EQ(take(numbers(7), 9)->size(), 7);
}

TEST(Repeat, RepeatsEachSample) {
  for (const auto& epoch : counts_by_epoch(repeat(numbers(11), 4), 3))
    for (const auto& [value, count] : epoch) EXPECT_EQ(count, 4) << value;
  EXPECT_THROW(repeat(numbers(3), 0), std::invalid_argument);
}

TEST(FixedSize, MakesEpochsOfAnyLength) {
  for (const std::int64_t length : {1, 4, 10, 25}) {
    const auto flow = from(fixed_size(numbers(10), length)).start(shuffled(4));
    EXPECT_EQ(flow->epoch_size(), length);
    std::map<std::int64_t, std::int64_t> counts;
    for (const auto value : drain(*flow)) ++counts[value];
    for (const auto& [value, count] : counts) EXPECT_LE(count, 4 * (length + 9) / 10) << value;
  }
  EXPECT_THROW(fixed_size(numbers(10), 0), std::invalid_argument);
  EXPECT_THROW(fixed_size(numbers(0), 10), std::invalid_argument);
}

TEST(RepeatFactor, MatchesLvisFormula) {
  // Category 1 is in all four samples, 2 in two of them, 3 in one: f = 1, 0.5, 0.25.
  const std::vector<std::vector<int>> categories = {{1}, {1, 2, 2}, {3, 2, 1}, {1, 1}};
  const auto of = [&](std::int64_t i) { return categories[static_cast<std::size_t>(i)]; };
  EXPECT_THAT(repeat_factor(numbers(4), 0.75, of)->repeats(),
              ElementsAre(1, std::sqrt(1.5), std::sqrt(3), 1));
  EXPECT_THAT(repeat_factor(numbers(4), 0.1, of)->repeats(), Each(1));
  EXPECT_THAT(repeat_factor(repeat(numbers(4), 2), 0.1, of)->repeats(), Each(2));
  EXPECT_THROW(repeat_factor(numbers(4), 0, of), std::invalid_argument);
}

TEST(Source, YieldsSameItemsForAnyThreadCount) {
  const auto source = fixed_size(
      mix<std::int64_t>(
          {concat<std::int64_t>({numbers(20), numbers(9, 100)}), repeat(numbers(5, 200), 3)},
          {1, 2}),
      41);
  const auto start = [&](int threads, Cursor cursor) {
    auto options = shuffled(3, threads);
    options.start = std::move(cursor);
    return from(source)
        .map("dice", [](std::int64_t n, Rng& rng) { return n * 1000 + std::int64_t(rng() % 1000); })
        .group(4)
        .start(options);
  };
  const auto expected = drain(*start(1, {}));
  for (const int threads : {2, 8}) EXPECT_EQ(drain(*start(threads, {})), expected);
  const auto whole = start(2, {});
  for (std::size_t k = 1; k <= expected.size(); ++k) {
    const auto rest = drain(*start(2, whole->next()->cursor));
    EXPECT_EQ(rest, std::vector(expected.begin() + static_cast<std::ptrdiff_t>(k), expected.end()));
  }
}

}  // namespace
}  // namespace millrace
