// Run by each of some ranks: detectors that they train together learn what one process learns from all their images.
#include <gmock/gmock.h>

#include <cmath>

#include "tests/models/small_batch.h"
#include "tests/ranks_main.h"
#include "tests/tensors.h"
#include "trainer/restore.h"
#include "trainer/training_step.h"

namespace millrace {
namespace {

using testing::cluster;

constexpr std::int64_t kSteps = 20;

/// Rounding grows from step to step: fp32 sums in another order differ by 1e-7 or so, the weights and then the losses by
/// a little more, and where a proposal is at the edge of being kept by a whole region of the few that small detectors look at.
constexpr double kRounding = 1e-3;

struct Case {
  std::string name, kind, more, norm = "frozen_bn";
  std::size_t parts = 1;  // micro-batches
  OptimizerOptions optimizer = {.clip_norm = 0};
  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

struct Trained {
  std::vector<Scalars> scalars;  // by step
  NamedTensors model;
};

/// Trains this rank's share of the four images, a rank of which has no objects where there are four.
Trained train(const Cluster& all, const Case& one) {
  const auto model = testing::small_detector(one.kind, one.more, one.norm);
  TrainingStep step(*model, {}, one.optimizer, all);
  step.start_alike();
  std::vector<Batch> batches;
  const auto whole = testing::four_images();
  const auto own = whole.size() / one.parts / static_cast<std::size_t>(all.size());
  for (const auto& part : testing::parts_of(whole, whole.size() / one.parts))
    batches.push_back(testing::part_of(part, own * static_cast<std::size_t>(all.rank()), own));
  Trained trained;
  LossScale scale;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    Figures figures;
    trained.scalars.push_back(
        step(batches, {.seed = 3, .step = i, .figures = &figures}, 0.01, scale).scalars);
  }
  step.check_alike();
  for (const auto& [name, value] : named_values(*model))
    trained.model.emplace_back(name, value.clone());
  return trained;
}

class RanksTrain : public ::testing::TestWithParam<Case> {};

const std::string kMasks = testing::kFewRegions + "mask_channels = 8\n";

INSTANTIATE_TEST_SUITE_P(
    ByName, RanksTrain,
    ::testing::Values(
        Case{"MaskRcnn", "maskrcnn", kMasks},
        Case{"MaskRcnnClipped", "maskrcnn", kMasks, "frozen_bn", 1, {.clip_norm = 0.5}},
        Case{"MaskRcnnOfMicroBatches", "maskrcnn", kMasks, "frozen_bn", 2},
        Case{"MaskRcnnSyncBn", "maskrcnn",
             kMasks + "fpn_norm = 'sync_bn'\nbox_head = '4conv1fc'\nbox_norm = 'sync_bn'\n",
             "sync_bn"},
        Case{"CascadeRcnn", "cascadercnn", kMasks + "masks = true\n"},
        Case{"RetinaNet", "retinanet", ""}, Case{"RetinaNetSyncBn", "retinanet", "", "sync_bn"}),
    [](const auto& one) { return one.param.name; });

TEST_P(RanksTrain, LikeOneProcessAndLikeTheRunBefore) {
  if (4 % (GetParam().parts * static_cast<std::size_t>(cluster->size())) != 0)
    GTEST_SKIP() << "there are four images";
  const auto together = train(*cluster, GetParam());
  const auto again = train(*cluster, GetParam());
  for (std::size_t i = 0; i < together.model.size(); ++i)
    EXPECT_TRUE(testing::same(again.model[i].second, together.model[i].second))
        << together.model[i].first;
  EXPECT_EQ(again.scalars, together.scalars);
  if (!cluster->is_chief()) return;
  const auto alone = train(Cluster::alone(), GetParam());
  double most = 0;
  std::string of;
  for (std::size_t i = 0; i < alone.scalars.size(); ++i) {
    ASSERT_EQ(together.scalars[i].size(), alone.scalars[i].size());
    for (std::size_t j = 0; j < alone.scalars[i].size(); ++j) {
      const auto& [name, expected] = alone.scalars[i][j];
      const auto& [name_here, value] = together.scalars[i][j];
      EXPECT_EQ(name_here, name);
      const auto off = std::abs(value - expected) / std::max(std::abs(expected), 1e-2);
      if (off > most) of = name + " of step " + std::to_string(i + 1);
      most = std::max(most, off);
    }
  }
  std::printf("largest relative difference of %zu steps: %.2g, of %s\n", alone.scalars.size(), most,
              of.c_str());
  EXPECT_LT(most, kRounding);
}

}  // namespace
}  // namespace millrace
