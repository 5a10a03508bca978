// Run by each of two ranks with a GPU of its own: sums over NCCL, batch norm over both GPUs, and a
// training by both. Skipped where there are fewer GPUs.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>

#include <cmath>

#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/small_batch.h"
#include "tests/models/sync_bn.h"
#include "tests/plugins/cuda/on_a_gpu.h"
#include "tests/support/ranks_main.h"

namespace millrace::testing {
namespace {

class OnTwoGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto ranks = static_cast<int>(cluster->size());
    if (!has_gpus(ranks)) GTEST_SKIP() << "fewer than " << ranks << " GPUs";
    prepare_gpu();
    gpu_ = open_device("cuda", cluster->local_rank());
  }
  at::Device gpu_ = at::kCPU;
};

TEST_F(OnTwoGpus, SumsAreThoseOfAllRanksEachTime) {
  const auto sync = make_gradient_sync(at::kCUDA, *cluster);
  const auto ranks = static_cast<double>(cluster->size());
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
    for (const std::int64_t count : {1, 1000, 10'000'000}) {
      const auto own = at::full({count}, 1.0 + static_cast<double>(cluster->rank()),
                                at::TensorOptions(type).device(gpu_));
      std::vector<at::Tensor> several = {own.clone(), own.clone(), own.clone()};
      for (const auto& values : several) sync->begin_sum(values, "test");
      sync->wait();
      // Queued after the wait, so it sees the sums.
      for (const auto& values : several)
        EXPECT_EQ(values.ne(ranks * (ranks + 1) / 2).sum().item<std::int64_t>(), 0)
            << type << " " << count;
    }
}

TEST_F(OnTwoGpus, SumsAsATreeHaveTheBitsOfSumsOverMpi) {
  const auto there = make_gradient_sync(at::kCUDA, *cluster, SumOrder::tree),
             here = make_gradient_sync(at::kCPU, *cluster);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const std::int64_t count : {1, 1001, 10'000'000}) {
      const auto own = (at::randn({count}) + static_cast<double>(cluster->rank())).to(type);
      const auto expected = own.clone(), found = own.to(gpu_);
      here->begin_sum(expected, "test");
      here->wait();
      there->begin_sum(found, "test");
      there->wait();
      EXPECT_TRUE(same(found.cpu(), expected)) << type << " " << count;
    }
}

TEST_F(OnTwoGpus, SyncBnIsBatchNormOfAllImages) {
  const auto images = cluster->size();
  const auto whole = values_to_norm(images);
  const auto alone = normed(Cluster::alone(), at::kCPU, whole, 0, images);
  const auto own = normed(*cluster, gpu_, whole, cluster->rank(), 1);
  ClusterSum sum(*cluster, at::kCUDA);
  sum(own.dweight);
  sum(own.dbias);
  EXPECT_TRUE(close(own.dweight.cpu(), alone.dweight, 1e-4));
  EXPECT_TRUE(close(own.dbias.cpu(), alone.dbias, 1e-4));
  EXPECT_TRUE(close(own.mean.cpu(), alone.mean, 1e-5));
  EXPECT_TRUE(close(own.var.cpu(), alone.var, 1e-5));
  EXPECT_TRUE(close(own.y.cpu(), alone.y.narrow(0, cluster->rank(), 1), 1e-4));
  EXPECT_TRUE(close(own.dx.cpu(), alone.dx.narrow(0, cluster->rank(), 1), 1e-4));
}

std::vector<double> train(const Cluster& all, at::Device device) {
  at::set_num_threads(1);  // ranks share the cores
  const auto model =
      small_detector("maskrcnn", kFewRegions + "mask.conv_dim = 8\n", "frozen_bn", device);
  TrainingStep step(*model, {}, {.clip_norm = 0}, all);
  step.start_alike();
  const auto whole = four_images();
  const auto own = whole.size() / static_cast<std::size_t>(all.size());
  const auto batch = part_of(whole, own * static_cast<std::size_t>(all.rank()), own);
  std::vector<double> losses;
  LossScale scale;
  for (int i = 0; i < 5; ++i)
    for (const auto& [name, value, kind] :
         step({&batch, 1}, {.seed = 3, .step = i}, 0.01, scale).scalars)
      if (name == "loss") losses.push_back(value);
  step.check_alike();
  return losses;
}

TEST_F(OnTwoGpus, TrainLikeOneProcess) {
  const auto together = train(*cluster, gpu_);
  const auto alone = train(Cluster::alone(), at::kCPU);
  ASSERT_EQ(together.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_NEAR(together[i], alone[i], 1e-3 * alone[i]) << "step " << i;
}

}  // namespace
}  // namespace millrace::testing
