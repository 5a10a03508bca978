// What is frozen stays, to the bit, running statistics too; what is not moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "millrace/trainer/detector/restore.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/small_batch.h"
#include "tests/support/tensors.h"

namespace millrace {
namespace {

class Frozen : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Norms, Frozen, ::testing::Values("bn", "sync_bn"));

NamedTensors copies(const Detector& model) {
  NamedTensors values;
  for (const auto& [name, value] : named_values(model))
    values.emplace_back(name, value.detach().clone());
  return values;
}

/// Trains a few steps; `is_frozen` says of which names nothing may move.
template <class F>
void expect_moves(const std::string& table, const OptimizerOptions& optimizer, F is_frozen) {
  const auto model =
      detectors()
          .at("maskrcnn")
          .create(parse_config(
                      "backbone.type = 'resnet18'\nbackbone.width = 16\nfpn.out_channels = 16\n"
                      "anchors.sizes = [8, 16, 32, 48, 64]\nfpn.norm = 'bn'\n" +
                          testing::kFewRegions + table,
                      "small.toml"),
                  {{"star", "ring", "disc"}, 1, at::kCPU});
  TrainingStep step(*model, {}, optimizer);
  const auto before = copies(*model);
  LossScale scale;
  const std::vector<Batch> batches = {testing::small_batch()};
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(step(batches, {.seed = 3, .step = i}, 0.01, scale).rejected, "");
  const auto after = copies(*model);
  std::size_t frozen_statistics = 0, moved_statistics = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& name = before[i].first;
    const bool is_same = before[i].second.equal(after[i].second);
    const bool is_statistic = name.find("running_") != std::string::npos;
    if (is_frozen(name)) {
      EXPECT_TRUE(is_same) << name;
    } else if (is_statistic) {
      EXPECT_FALSE(is_same) << name;
    }
    (is_frozen(name) ? frozen_statistics : moved_statistics) += is_statistic;
  }
  EXPECT_GT(frozen_statistics, 0U);
  EXPECT_GT(moved_statistics, 0U);
}

TEST_P(Frozen, StagesKeepTheirStatistics) {
  expect_moves("backbone.norm = '" + GetParam() + "'\nbackbone.freeze_at = 3\n", {},
               [](const std::string& name) {
                 const std::string body = "backbone.body.";
                 return std::ranges::any_of(
                     std::initializer_list<std::string>{"conv1.", "bn1.", "layer1.", "layer2."},
                     [&](const auto& part) { return name.starts_with(body + part); });
               });
}

TEST_P(Frozen, GroupsOfTheOptimizerKeepTheirStatistics) {
  expect_moves("backbone.norm = '" + GetParam() + "'\nbackbone.freeze_at = 0\n",
               {.groups = {{.match = "backbone.body.layer3.*", .frozen = true}}},
               [](const std::string& name) { return name.starts_with("backbone.body.layer3."); });
}

/// A layer whose convolution alone is frozen is normalised as any other.
TEST_P(Frozen, ConvolutionsAloneLeaveTheirNormToTrain) {
  expect_moves("backbone.norm = '" + GetParam() + "'\nbackbone.freeze_at = 1\n",
               {.groups = {{.match = "backbone.body.layer4.*.conv*.weight", .frozen = true}}},
               [](const std::string& name) {
                 return name.starts_with("backbone.body.conv1.") ||
                        name.starts_with("backbone.body.bn1.") ||
                        (name.starts_with("backbone.body.layer4.") &&
                         name.find(".conv") != std::string::npos);
               });
}

}  // namespace
}  // namespace millrace
