// trainer bench dataflow: its figures, and that batches depend on neither threads nor restarts.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using BenchDataflow = Trainer;

TEST_F(BenchDataflow, BatchesAreTheSameForAnyNumberOfThreads) {
  const auto data = make_data();
  const auto digests = [&](const std::vector<std::string>& more) {
    auto arguments = on(data, {"bench", "dataflow"});
    arguments.insert(arguments.end(), {"--batches", "6", "--digest", "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = trainer(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.json().at("digests").get<std::vector<std::string>>();
  };
  const auto alone = digests({"--threads", "1"});
  EXPECT_EQ(alone.size(), 6U);
  EXPECT_EQ(digests({"--threads", "2"}), alone);
  const std::vector tail(alone.begin() + 4, alone.end());
  EXPECT_EQ(digests({"--threads", "2", "--from", "4"}), tail)
      << "a restart gives the batches that were left";
}

TEST_F(BenchDataflow, JsonHasEveryFigure) {
  auto arguments = on(make_data(), {"bench", "dataflow"});
  arguments.insert(arguments.end(), {"--batches", "4", "--json"});
  const auto result = trainer(arguments);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = result.json();
  for (const char* key :
       {"images_per_s", "images_per_cpu_s", "decode_floor_images_per_s", "peak_rss_bytes"})
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  EXPECT_EQ(json.at("images"), 16);
  EXPECT_FALSE(json.at("stages").empty());
  EXPECT_NE(json.at("bottleneck"), "");
  EXPECT_THAT(json.at("verdict"), ::testing::HasSubstr("the consumer"));
  for (const char* key : {"decode_ms", "resize_ms", "copy_ms", "sum_ms"})
    EXPECT_GT(json.at("floors").at(key).get<double>(), 0) << key;
  EXPECT_GT(json.at("share_of_floors").get<double>(), 0);
  double busy = 0;
  for (const auto& stage : json.at("stages")) busy += stage.at("busy_share").get<double>();
  EXPECT_NEAR(busy, 1, 1e-9);
  const double padding = json.at("padding_share");
  EXPECT_GE(padding, 0);
  EXPECT_LT(padding, 1);
  EXPECT_FALSE(json.contains("digests"));
}

TEST_F(BenchDataflow, StartingBehindTheEndIsWrongUsage) {
  expect_error(
      trainer({"bench", "dataflow", "configs/maskrcnn.toml", "--batches", "4", "--from", "4"}), 2,
      "--from");
}

}  // namespace
}  // namespace millrace::testing
