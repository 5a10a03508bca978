// Gradient reductions, batch norm and training on several ranks, each with its own GPU. OnRanks
// runs on each rank; RanksUnderMpirun starts the ranks.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cmath>
#include <cstdlib>

#include "millrace/trainer/cluster/gradient_sync.h"
#include "millrace/trainer/training_step.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/programs.h"
#include "tests/models/small_batch.h"
#include "tests/models/sync_bn.h"

namespace millrace::testing {
namespace {

class RanksUnderMpirun : public Trainer, public ::testing::WithParamInterface<int> {
 protected:
  /// Returns the path of the package's mpirun, otherwise of mpirun in PATH; empty if not found.
  static fs::path launcher() {
    if (auto own = own_program("mpirun"); fs::exists(own)) return own;
    std::istringstream folders(std::getenv("PATH"));
    for (std::string folder; std::getline(folders, folder, ':');)
      if (auto file = fs::path(folder) / "mpirun"; fs::exists(file)) return file;
    return {};
  }
};

TEST_P(RanksUnderMpirun, Agree) {
  if (!tested().missing.empty()) GTEST_SKIP() << tested().missing;
  if (launcher().empty()) GTEST_SKIP() << "mpirun not found in PATH";
  if (!gradient_syncs().entries().contains(tested().kind))
    GTEST_SKIP() << "the plug-in has no gradient sync";
  const auto ranks = GetParam();
  const auto devices = c10::impl::getDeviceGuardImpl(tested().device.type())->deviceCount();
  if (tested().on_cuda() && devices < ranks) GTEST_SKIP() << "fewer than " << ranks << " GPUs";
  auto words = Words{"--allow-run-as-root",
                     "--oversubscribe",
                     "-n",
                     std::to_string(ranks),
                     own_program("trainer"),
                     "check-gpu",
                     "--device",
                     tested().kind,
                     "--plugin",
                     tested().plugin};
  if (tested().small) words.emplace_back("--small");
  const auto end = run(launcher(), words + Words{"--", ranks > 1 ? "--gtest_filter=OnRanks.*"
                                                                 : "--gtest_filter=OnRanks.Sum*"});
  EXPECT_EQ(end.exit_code, 0) << end.out << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("[  PASSED  ]"), Not(HasSubstr("[  SKIPPED ]"))));
}

INSTANTIATE_TEST_SUITE_P(Ranks, RanksUnderMpirun, ::testing::Values(1, 2));

class OnRanks : public OnDevice {
 protected:
  void SetUp() override {
    if (!tested().cluster->world()) GTEST_SKIP() << "started by RanksUnderMpirun";
    OnDevice::SetUp();
  }

  std::vector<std::int64_t> counts() const { return {1, 1001, small_ ? 10'000 : 10'000'000}; }

  const Cluster& cluster_ = *tested().cluster;
};

TEST_F(OnRanks, SumsOverAllRanks) {
  const auto sync = make_gradient_sync(device_.type(), cluster_);
  const auto ranks = static_cast<double>(cluster_.size());
  for (const auto type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16})
    for (const auto count : counts()) {
      const auto own = at::full({count}, 1.0 + static_cast<double>(cluster_.rank()),
                                at::TensorOptions(type).device(device_));
      std::vector<at::Tensor> several = {own.clone(), own.clone(), own.clone()};
      for (const auto& values : several) sync->begin_sum(values, "test");
      sync->wait();
      // These reads are queued after the wait, so the sums are complete.
      for (const auto& values : several)
        EXPECT_EQ(values.ne(ranks * (ranks + 1) / 2).sum().item<std::int64_t>(), 0)
            << type << " " << count;
    }
}

TEST_F(OnRanks, SumsInTreeOrderLikeMpi) {
  const auto there = make_gradient_sync(device_.type(), cluster_, SumOrder::tree),
             here = make_gradient_sync(at::kCPU, cluster_);
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16})
    for (const auto count : counts()) {
      const auto own = (at::randn({count}) + static_cast<double>(cluster_.rank())).to(type);
      const auto expected = own.clone(), found = own.to(device_);
      here->begin_sum(expected, "test");
      here->wait();
      there->begin_sum(found, "test");
      there->wait();
      EXPECT_TRUE(tensors_equal(found.cpu(), expected)) << type << " " << count;
    }
}

TEST_F(OnRanks, MatchesBatchNormOverAllImages) {
  const auto images = cluster_.size();
  const auto whole = values_to_norm(images);
  const auto alone = normed(Cluster::alone(), at::kCPU, whole, 0, images);
  const auto own = normed(cluster_, device_, whole, cluster_.rank(), 1);
  ClusterSum sum(cluster_, device_.type());
  sum(own.dweight);
  sum(own.dbias);
  EXPECT_TRUE(tensors_close(own.dweight.cpu(), alone.dweight, 1e-4));
  EXPECT_TRUE(tensors_close(own.dbias.cpu(), alone.dbias, 1e-4));
  EXPECT_TRUE(tensors_close(own.mean.cpu(), alone.mean, 1e-5));
  EXPECT_TRUE(tensors_close(own.var.cpu(), alone.var, 1e-5));
  EXPECT_TRUE(tensors_close(own.y.cpu(), alone.y.narrow(0, cluster_.rank(), 1), 1e-4));
  EXPECT_TRUE(tensors_close(own.dx.cpu(), alone.dx.narrow(0, cluster_.rank(), 1), 1e-4));
}

std::vector<double> train(const Cluster& all, at::Device device) {
  at::set_num_threads(1);  // ranks share the cores
  const auto model =
      small_detector("maskrcnn", kFewRegions + "mask.conv_dim = 8\n", "frozen_bn", device);
  TrainingStep step(*model, {}, {.clip_norm = 0}, all);
  step.broadcast_initial_state();
  const auto whole = four_images();
  const auto own = whole.size() / static_cast<std::size_t>(all.size());
  const auto batch = part_of(whole, own * static_cast<std::size_t>(all.rank()), own);
  std::vector<double> losses;
  LossScale scale;
  for (int i = 0; i < 5; ++i)
    for (const auto& [name, value, kind] :
         step({&batch, 1}, {.seed = 3, .step = i}, 0.01, scale).scalars)
      if (name == "loss") losses.push_back(value);
  step.check_ranks_equal();
  return losses;
}

TEST_F(OnRanks, MatchesTrainingInOneProcess) {
  const auto together = train(cluster_, device_);
  const auto alone = train(Cluster::alone(), at::kCPU);
  ASSERT_EQ(together.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i)
    EXPECT_NEAR(together[i], alone[i], 1e-3 * alone[i]) << "step " << i;
}

}  // namespace
}  // namespace millrace::testing
