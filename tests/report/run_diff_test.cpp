// Two runs compared: laws of what `trainer diff` says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "millrace/report/run_facts_diff.h"
#include "millrace/report/run_outcome_diff.h"

namespace millrace::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MetricsLog log_of(const std::string& lines) { return read_metrics(lines); }

TEST(RunDiff, MetricsAreComparedWhereTheyAreOfTheSameSteps) {
  const auto each = log_of("{\"step\":1,\"loss\":4}\n{\"step\":2,\"loss\":2}\n");
  const auto pairs = log_of("{\"step\":2,\"loss\":3}\n{\"step\":4,\"loss\":1}\n");
  EXPECT_EQ(metrics_diff(each, pairs).compared, 0);  // 3 is the mean of 4 and 2
  EXPECT_FALSE(metrics_diff(each, pairs).first);
  const auto longer =
      log_of("{\"step\":2,\"loss\":3}\n{\"step\":4,\"loss\":1}\n{\"step\":6,\"loss\":7}\n");
  EXPECT_EQ(metrics_diff(pairs, longer).compared, 2);
  EXPECT_EQ(metrics_diff(pairs, longer).same_to, 4);
  EXPECT_FALSE(metrics_diff(pairs, longer).first);
}

TEST(RunDiff, TheFirstDifferenceIsTheTotalLossIfThatDiffers) {
  const auto a = log_of(
      "{\"step\":1,\"a\":1,\"loss\":4,\"loss_box\":1,\"time/step_s\":1}\n"
      "{\"step\":2,\"a\":1,\"loss\":4,\"loss_box\":1}\n{\"step\":3,\"a\":1}\n");
  const auto b = log_of(
      "{\"step\":1,\"a\":1,\"loss\":4,\"loss_box\":1,\"time/step_s\":2}\n"
      "{\"step\":2,\"a\":2,\"loss\":4.5,\"loss_box\":2}\n{\"step\":3,\"a\":1}\n");
  const auto diff = metrics_diff(a, b);
  EXPECT_EQ(diff.same_to, 1);
  ASSERT_TRUE(diff.first);
  EXPECT_EQ(diff.first->step, 2);
  EXPECT_EQ(diff.first->name, "loss");
  EXPECT_EQ(diff.first->a, 4);
  EXPECT_EQ(diff.first->b, 4.5);
}

TEST(RunDiff, WhatIsNotFiniteInBothIsTheSame) {
  const auto bad = log_of("{\"step\":1,\"loss\":null}\n"),
             good = log_of("{\"step\":1,\"loss\":1}\n");
  EXPECT_FALSE(metrics_diff(bad, bad).first);
  EXPECT_TRUE(metrics_diff(bad, good).first);
}

/// A run of one start with so many ranks.
RunFiles run_of(int ranks, const std::string& toml = "[train]\nmicro_batch = 0\n") {
  RunFiles run;
  run.config = parse_config(toml, "config.toml");
  auto list = nlohmann::ordered_json::array();
  for (int rank = 0; rank < ranks; ++rank)
    list.push_back({{"rank", rank},
                    {"host", "h" + std::to_string(ranks)},
                    {"device", "cpu"},
                    {"processor", "p"},
                    {"instructions", "AVX2"},
                    {"maths_threads", 1}});
  run.record = {{"config_file", "/a.toml"},
                {"starts", {{{"program", "trainer 0"}, {"ranks", list}}}}};
  return run;
}

FactsDiff diff_of(const RunFiles& a, const RunFiles& b) {
  return facts_diff(a, b,
                    [](const std::string& key, const Config&) { return key != "train.output"; });
}

std::vector<std::string> names(const std::vector<Difference>& all) {
  std::vector<std::string> names;
  for (const auto& one : all) names.push_back(one.what);
  return names;
}

TEST(RunDiff, RanksDecideUnlessMicroBatchesMakeThemAlike) {
  EXPECT_THAT(names(diff_of(run_of(1), run_of(2)).deciding), ElementsAre("ranks"));
  const std::string cut = "[train]\nmicro_batch = 2\n";
  const auto alike = diff_of(run_of(1, cut), run_of(2, cut));
  EXPECT_THAT(alike.deciding, IsEmpty());
  EXPECT_THAT(names(alike.others), ElementsAre("ranks", "hosts"));
}

TEST(RunDiff, AnyStartCounts) {
  auto a = run_of(1), b = run_of(1);
  auto later = b.record["starts"][0];
  later["program"] = "trainer 1";
  b.record["starts"].push_back(later);
  const auto diff = diff_of(a, b);
  ASSERT_THAT(names(diff.deciding), ElementsAre("program"));
  EXPECT_EQ(diff.deciding[0].a, "trainer 0");
  EXPECT_EQ(diff.deciding[0].b, "trainer 0, trainer 1");
}

TEST(RunDiff, WhereDataLiesCountsUnlessTheirDigestsAreKnown) {
  auto a = run_of(1, "[data]\nroot = \"a\"\n"), b = run_of(1, "[data]\nroot = \"b\"\n");
  EXPECT_THAT(names(diff_of(a, b).deciding), ElementsAre("data.root"));
  for (auto* run : {&a, &b})
    run->record["starts"][0]["data"]["train"] = {{"samples", 3}, {"digest", "12"}};
  EXPECT_THAT(diff_of(a, b).deciding, IsEmpty());
  b.record["starts"][0]["data"]["train"]["digest"] = "13";
  EXPECT_THAT(names(diff_of(a, b).deciding), ElementsAre("data of training"));
}

}  // namespace
}  // namespace millrace::report
