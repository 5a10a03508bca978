// Properties of the cost model, and its errors against published results (docs/scaling.md states
// the same bounds).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/bench/scaling/published.h"

namespace millrace::scaling {
namespace {

const Compute kCompute{.fixed_s = 2e-3, .image_s = 10e-3, .spread = 0.5};
const Network kNetwork{8, {300e9, 4e-6}, {12.5e9, 14e-6}};

std::vector<Gradient> buckets() { return in_buckets(mask_rcnn_gradients(), 25e6); }

TEST(ScalingModel, OneGpuMatchesMeasurement) {
  const auto step = step_time(kCompute, 4, buckets(), 1, kNetwork);
  EXPECT_DOUBLE_EQ(step.total_s(), 2e-3 + 4 * 10e-3);
  EXPECT_DOUBLE_EQ(efficiency(kCompute, 4, buckets(), 1, kNetwork), 1);
}

TEST(ScalingModel, EfficiencyDecreasesWithGpus) {
  for (const double between : {1e9, 12.5e9, 400e9})
    for (const double images : {1, 4, 12}) {
      auto network = kNetwork;
      network.between.bytes_per_s = between;
      double before = 1;
      for (int gpus = 1; gpus <= 512; ++gpus) {
        const double now = efficiency(kCompute, images, buckets(), gpus, network);
        ASSERT_LE(now, before * (1 + 1e-12)) << gpus << " GPUs, " << images << " images";
        ASSERT_GT(now, 0);
        before = now;
      }
    }
}

TEST(ScalingModel, EfficiencyGrowsWithImages) {
  double before = 0;
  for (int images = 1; images <= 16; ++images) {
    const double now = efficiency(kCompute, images, buckets(), 64, kNetwork);
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(ScalingModel, AllReduceAfterBackwardIsFullyExposed) {
  double bytes = 0;
  for (const auto& bucket : buckets()) bytes += bucket.bytes;
  const std::vector<Gradient> at_once{{bytes, 1}};
  const auto late = step_time(kCompute, 4, at_once, 16, kNetwork);
  EXPECT_NEAR(late.exposed_s, all_reduce_s(bytes, 16, kNetwork), 1e-12);
  EXPECT_LT(step_time(kCompute, 4, buckets(), 16, kNetwork).exposed_s, late.exposed_s);
}

TEST(ScalingModel, AllReduceRespectsLinkSpeed) {
  for (int gpus = 2; gpus <= 512; gpus *= 2) {
    const double rate = gpus <= 8 ? kNetwork.within.bytes_per_s : kNetwork.between.bytes_per_s;
    EXPECT_GE(all_reduce_s(1e8, gpus, kNetwork), 2.0 * (gpus - 1) / gpus * 1e8 / rate);
  }
  EXPECT_EQ(all_reduce_s(1e8, 1, kNetwork), 0);
}

TEST(ScalingModel, SmallAllReducesUseTree) {
  // A ring's latency grows with the number of nodes, a tree's with its logarithm.
  EXPECT_LT(all_reduce_s(1e3, 512, kNetwork), 2 * all_reduce_s(1e3, 64, kNetwork));
}

TEST(ScalingModel, ExpectedMaximumMatchesKnownValues) {
  EXPECT_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 1 / std::sqrt(std::acos(-1.0)), 1e-9);
  EXPECT_NEAR(expected_maximum(3), 1.5 / std::sqrt(std::acos(-1.0)), 1e-9);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 1e-4);  // Harter 1961
}

TEST(ScalingModel, BucketsContainEveryGradient) {
  const auto all = in_buckets({{4, 0.9}, {3, 0.1}, {3, 0.2}, {1, 0.95}}, 5);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].bytes, 6);
  EXPECT_EQ(all[0].ready, 0.2);
  EXPECT_EQ(all[1].bytes, 5);
  EXPECT_EQ(all[1].ready, 0.95);
}

TEST(ScalingModel, CountsDataServersByCoresAndLink) {
  const DataServer by_cores{
      .cores = 10, .images_per_core_s = 400, .link_bytes_per_s = 1e12, .image_bytes = 3e6};
  EXPECT_EQ(data_servers(4000, by_cores), 1);
  EXPECT_EQ(data_servers(4001, by_cores), 2);
  const DataServer by_link{
      .cores = 10, .images_per_core_s = 400, .link_bytes_per_s = 3e9, .image_bytes = 3e6};
  EXPECT_EQ(data_servers(4000, by_link), 4);
}

/// Expects every value that was not fitted to have an error of at most `bound`.
void expect_within(const std::vector<Comparison>& all, const std::string& of, double bound) {
  int compared = 0;
  for (const auto& c : all) {
    if (c.what.find(of) == std::string::npos) continue;
    if (c.fitted) {
      EXPECT_NEAR(c.error(), 0, 1e-6) << c.what;
      continue;
    }
    EXPECT_LE(std::abs(c.error()), bound) << c.what;
    ++compared;
  }
  EXPECT_GT(compared, 0) << of;
}

TEST(ScalingModel, MatchesPublishedStepTimes) {
  expect_within(published_steps(), "aws", 0.05);
  expect_within(published_steps(), "64 x", 0.05);
  expect_within(published_steps(), "256 x 1", 0.40);  // another code base, see the page
}

TEST(ScalingModel, MatchesPublishedTrainingTimes) {
  expect_within(published_trainings(), "MLPerf", 0.06);
  expect_within(published_trainings(), "aws", 0.11);
}

}  // namespace
}  // namespace millrace::scaling
