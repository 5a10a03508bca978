// Runs on every rank. With train.micro_batch, several ranks take the same steps on a device as one
// process, bit for bit.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>

#include "millrace/base/errors.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/other_device.h"
#include "tests/models/small_batch.h"
#include "tests/support/ranks_main.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

/// The metrics of three steps, and the parameters and momentum after them.
struct Trained {
  std::vector<StepMetrics> scalars;
  NamedTensors values;
};

Trained train(const Cluster& all, const SmallKind& kind, const std::string& norm,
              at::Device device) {
  at::set_num_threads(1);
  TrainOptions options;
  options.micro_batch = 1;
  const auto model = small_detector(kind.name, kind.more, norm, device);
  TrainingStep step(*model, options, {}, all);
  step.broadcast_initial_state();
  const auto own = 4 / static_cast<std::size_t>(all.size());
  const auto batch = part_of(four_images(), own * static_cast<std::size_t>(all.rank()), own);
  Trained result;
  LossScale scale;
  for (int i = 0; i < 3; ++i) {
    Metrics metrics;
    const StepInfo info{.seed = 3, .step = i, .metrics = &metrics};
    result.scalars.push_back(step({&batch, 1}, info, 0.01, scale).scalars);
  }
  result.values = copies_of(*model);
  for (const auto& [name, value] : step.optimizer().state())
    result.values.emplace_back(name, value.clone());
  for (auto& [name, value] : result.values) value = value.cpu();
  return result;
}

void expect_same_training(const Trained& found, const Trained& expected) {
  for (std::size_t i = 0; i < expected.scalars.size(); ++i) {
    ASSERT_EQ(found.scalars[i].size(), expected.scalars[i].size());
    for (std::size_t k = 0; k < expected.scalars[i].size(); ++k) {
      EXPECT_EQ(found.scalars[i][k].name, expected.scalars[i][k].name);
      EXPECT_EQ(found.scalars[i][k].value, expected.scalars[i][k].value)
          << expected.scalars[i][k].name << " in step " << i;
    }
  }
  expect_same(found.values, expected.values);
}

const at::Device kThere(kOtherDevice, 0);

TEST(DeviceMicroBatches, DoNotDependOnRankCount) {
  for (const auto& kind :
       {SmallKind{"maskrcnn", kFewRegions + "mask.conv_dim = 8\n"}, SmallKind{"retinanet", ""}})
    for (const auto* norm : {"frozen_bn", "gn"}) {
      SCOPED_TRACE(kind.name + " " + norm);
      expect_same_training(train(*cluster, kind, norm, kThere),
                           train(Cluster::alone(), kind, norm, kThere));
    }
}

/// The reference runs on the CPU, where the micro-batches of one process can share a backward pass.
TEST(DeviceMicroBatches, ShareStatisticsAcrossRanks) {
  const SmallKind kind{"retinanet", ""};
  if (cluster->size() < 4) {
    EXPECT_THAT(message_of([&] { train(*cluster, kind, "sync_bn", kThere); }),
                HasSubstr("train.micro_batch"));
    return;
  }
  const auto found = train(*cluster, kind, "sync_bn", kThere),
             expected = train(Cluster::alone(), kind, "sync_bn", at::kCPU);
  expect_same_training(train(*cluster, kind, "sync_bn", kThere), found);
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    EXPECT_TRUE(tensors_close(found.values[i].second, expected.values[i].second, 1e-4))
        << expected.values[i].first;
}

}  // namespace
}  // namespace millrace::testing
