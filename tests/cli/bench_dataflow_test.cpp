// trainer bench dataflow: its metrics, and batches that depend neither on threads nor on restarts.
#include "tests/cli/trainer.h"

namespace millrace::testing {
namespace {

using BenchDataflow = Trainer;

TEST_F(BenchDataflow, MakesSameBatchesForAnyThreadCount) {
  const auto data = make_data();
  const auto digests = [&](const Words& more) {
    return successful(
               trainer(on(data, {"bench", "dataflow", "--batches", "6", "--digest", "--json"}) +
                       more))
        .json()
        .at("digests")
        .get<Words>();
  };
  const auto alone = digests({"--threads", "1"});
  EXPECT_EQ(alone.size(), 6U);
  EXPECT_EQ(digests({"--threads", "2"}), alone);
  const std::vector tail(alone.begin() + 4, alone.end());
  EXPECT_EQ(digests({"--threads", "2", "--from", "4"}), tail)
      << "a restart yields the remaining batches";
}

TEST_F(BenchDataflow, ReportsEveryMetricAsJson) {
  const auto json =
      successful(trainer(on(make_data(), {"bench", "dataflow", "--batches", "4", "--json"})))
          .json();
  for (const char* key : {"images_per_s", "images_per_cpu_s", "decode_floor_images_per_s",
                          "first_batch_s", "peak_rss_bytes"})
    EXPECT_GT(json.at(key).get<double>(), 0) << key;
  EXPECT_EQ(json.at("images"), 16);
  EXPECT_FALSE(json.at("stages").empty());
  EXPECT_NE(json.at("bottleneck"), "");
  EXPECT_THAT(json.at("verdict"), HasSubstr("consumer"));
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

TEST_F(BenchDataflow, RunsWithoutTorchProgram) {
  const auto alone = in_folder("trainer");
  fs::copy_file(MILLRACE_TRAINER, alone);
  const auto command =
      on(make_data(), {"bench", "dataflow", "--batches", "4", "--digest", "--json"});
  const auto torch = std::string(MILLRACE_TRAINER) + "-torch";
  for (const Words& more : {Words{}, {"--set", "train.seed=5"}})
    EXPECT_EQ(successful(run(alone, command + more)).json().at("digests"),
              successful(run(torch, command + more)).json().at("digests"));

  const auto is_missing = in_folder("trainer-torch").string() + ": No such file";
  for (const auto* key : {"plugins=['some.so']", "unheard.of=1"})
    expect_error(run(alone, command + Words{"--set", key}), 1, is_missing);
  expect_error(run(alone, {"bench", "--help"}), 1, is_missing);
  EXPECT_THAT(successful(run(alone, {"bench", "dataflow", "--help"})).out, HasSubstr("--digest"));
  expect_error(run(alone, command + Words{"--set", "data.short_sid=64"}), 2, "short_side");
}

TEST_F(BenchDataflow, RejectsStartAfterEnd) {
  expect_error(
      trainer({"bench", "dataflow", "configs/maskrcnn.toml", "--batches", "4", "--from", "4"}), 2,
      "--from");
}

}  // namespace
}  // namespace millrace::testing
