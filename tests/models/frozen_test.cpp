// Frozen parameters and running statistics stay bit-identical, and all others change.
#include <gtest/gtest.h>

#include <regex>

#include "millrace/trainer/training_step.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

class Frozen : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Norms, Frozen, ::testing::Values("bn", "sync_bn"));

/// Trains for a few steps; expects all tensors that match `frozen` to stay unchanged and all other
/// running statistics to change.
void expect_frozen(const std::string& norm, const std::string& table,
                   const OptimizerOptions& optimizer, const std::string& frozen) {
  const auto model = small_detector("maskrcnn", "fpn.norm = 'bn'\n" + kFewRegions + table, norm);
  TrainingStep step(*model, {}, optimizer);
  const auto before = copies_of(*model);
  LossScale scale;
  const std::vector<Batch> batches = {small_batch()};
  for (std::int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(step(batches, {.seed = 3, .step = i}, 0.01, scale).rejected, "");
  const auto after = copies_of(*model);
  std::size_t frozen_statistics = 0, moved_statistics = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto& name = before[i].first;
    const bool is_frozen = std::regex_match(name, std::regex("backbone\\.body\\." + frozen)),
               is_same = before[i].second.equal(after[i].second),
               is_statistic = name.find("running_") != std::string::npos;
    if (is_frozen || is_statistic) {
      EXPECT_EQ(is_same, is_frozen) << name;
    }
    (is_frozen ? frozen_statistics : moved_statistics) += is_statistic;
  }
  EXPECT_GT(frozen_statistics, 0U);
  EXPECT_GT(moved_statistics, 0U);
}

TEST_P(Frozen, KeepsStatisticsOfFrozenStages) {
  expect_frozen(GetParam(), "backbone.freeze_at = 3\n", {}, "(conv1|bn1|layer1|layer2)\\..*");
}

TEST_P(Frozen, KeepsStatisticsOfFrozenGroups) {
  expect_frozen(GetParam(), "", {.groups = {{.match = "backbone.body.layer3.*", .frozen = true}}},
                "layer3\\..*");
}

/// If only a layer's convolution is frozen, its norm is still trained.
TEST_P(Frozen, TrainsNormsAfterFrozenConvolutions) {
  expect_frozen(GetParam(), "backbone.freeze_at = 1\n",
                {.groups = {{.match = "backbone.body.layer4.*.conv*.weight", .frozen = true}}},
                "((conv1|bn1)|layer4\\..*\\.conv.)\\..*");
}

}  // namespace
}  // namespace millrace::testing
