// Runs on every rank: a step on several ranks equals a step of one process on all their images.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <mutex>
#include <set>

#include "millrace/base/errors.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/training_step.h"
#include "tests/support/ranks_main.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kImages = 8;  // per step

/// Two losses: the weighted mean of (w - id)^2 over all images, and the mean of (odd - id)^2 over
/// images with an odd id; no loss depends on `idle`. The buffer `seen` is the id of a batch's first
/// image or, with `normalises`, a sum over the images of all ranks.
class SomeDetector final : public Detector {
 public:
  SomeDetector() {
    w_ = parameters_.add("w", at::full({2}, 1.0), ParameterKind::weight);
    odd_ = parameters_.add("odd", at::full({1}, 1.0), ParameterKind::weight);
    idle_ = parameters_.add("idle", at::full({3}, 1.0), ParameterKind::weight);
    seen_ = parameters_.add("seen", at::zeros({1}), ParameterKind::buffer);
  }

  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    auto fit = w_.sum() * 0, odd = w_.sum() * 0;
    double count = 0, odds = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto id = static_cast<double>(batch.images[i].image_id);
      if (id == bad_image) fit = fit + std::numeric_limits<double>::infinity();
      fit = fit + (w_ - id).square().sum() * step.rng(/*stream=*/1, i).uniform() * factor;
      count += 1;
      if (static_cast<std::int64_t>(id) % 2 == 0) continue;
      odd = odd + (odd_ - id).square().sum();
      odds += 1;
    }
    if (normalises) {
      const auto sums = at::tensor({fit.item<double>(), count}, at::kDouble);
      if (step.ranks) (*step.ranks)(sums);
      fit = fit / sums[0].abs().to(at::kFloat) + fit;
      if (!step.ranks || step.ranks->updates_statistics()) seen_.copy_(sums[0].reshape({1}));
    } else if (keeps_last) {
      const std::lock_guard lock(mutex_);
      seen_.fill_(static_cast<double>(batch.images[0].image_id));
      sizes.emplace_back(step.padded.width, step.padded.height);
    }
    if (step.metrics) step.metrics->add("odd/share", odds, count);
    if (step.metrics && odds > 0) step.metrics->add("odd/loss", odd.detach().item<double>(), odds);
    if (leaves_out_odd && odds == 0) return {{"fit", fit, {"images", count}}};
    return {{"fit", fit, {"images", count}}, {"odd", odd, {"odd images", odds}}};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

  double value(const char* name) const {
    return parameters_.find(name)->value.flatten()[0].item<double>();
  }

  double bad_image = -1, factor = 1;
  bool leaves_out_odd = false, normalises = false, keeps_last = true;
  std::vector<std::pair<int, int>> sizes;  // padded sizes that the steps report

 private:
  std::mutex mutex_;
  Parameters parameters_;
  at::Tensor w_, odd_, idle_, seen_;
};

/// Returns a batch of the images with ids [first, first + count), except lost images. Its padded
/// size depends on `first`.
Batch batch_of(std::int64_t first, std::int64_t count, const std::set<std::int64_t>& lost) {
  Batch batch{.height = static_cast<std::int32_t>(2 + first), .width = 9};
  for (auto id = first; id < first + count; ++id)
    if (!lost.contains(id)) batch.images.push_back({.image_id = id});
  batch.objects.resize(batch.images.size());
  batch.pixels.reset(new std::uint8_t[batch.bytes()]());
  return batch;
}

/// Training steps on the ranks of `all`, each on `parts` batches per rank.
struct Steps {
  const Cluster& all = *cluster;
  TrainOptions train = {};
  OptimizerOptions optimizer = {.weight_decay = 0.1};
  std::int64_t parts = 1, count = 20;
  std::set<std::int64_t> lost = {};  // ids of images that are missing in each step
  SomeDetector model = {};
  LossScale scale = {};
  std::vector<StepEnd> ends = {};
  NamedTensors values = {};  // final values of the model and the optimizer

  void run() {
    TrainingStep step(model, train, optimizer, all);
    step.broadcast_initial_state();
    const auto own = kImages / parts / all.size();
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<Batch> batches;
      for (std::int64_t part = 0; part < parts; ++part)
        batches.push_back(batch_of(kImages / parts * part + own * all.rank(), own, lost));
      Metrics metrics;
      ends.push_back(step(batches, {.seed = 5, .step = i, .metrics = &metrics}, 0.1, scale));
    }
    step.check_ranks_equal();
    for (const auto& [name, value] : named_values(model)) values.emplace_back(name, value.clone());
    for (const auto& [name, value] : step.optimizer().state())
      values.emplace_back(name, value.clone());
  }
};

void expect_near(const StepMetrics& actual, const StepMetrics& expected, double rounding) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].name, expected[i].name);
    EXPECT_NEAR(actual[i].value, expected[i].value, rounding * (1 + std::abs(expected[i].value)))
        << actual[i].name;
  }
}

void expect_steps_of_one_process(Steps&& together, Steps&& alone, double rounding = 1e-5) {
  together.run();
  alone.run();
  for (std::size_t i = 0; i < alone.ends.size(); ++i)
    expect_near(together.ends[i].scalars, alone.ends[i].scalars, rounding);
  for (const auto* name : {"w", "odd", "idle"})
    EXPECT_NEAR(together.model.value(name), alone.model.value(name), 10 * rounding) << name;
}

TEST(RanksStep, MatchesOneProcess) {
  expect_steps_of_one_process({}, {.all = Cluster::alone()});
  expect_steps_of_one_process({.parts = 2}, {.all = Cluster::alone(), .parts = 2});
  for (const OptimizerOptions& options : {OptimizerOptions{.weight_decay = 0.1, .clip_norm = 0.5},
                                          {.weight_decay = 0.1, .trust = Trust::lars}})
    expect_steps_of_one_process({.optimizer = options},
                                {.all = Cluster::alone(), .optimizer = options});
}

TEST(RanksStep, ExchangesHalfPrecisionGradients) {
  TrainOptions bf16;
  bf16.gradient_type = FloatType::bf16;
  expect_steps_of_one_process({.train = bf16, .count = 5}, {.all = Cluster::alone(), .count = 5},
                              0.05);
}

TEST(RanksStep, FindsSameLossScaleAsOneProcess) {
  TrainOptions fp16;
  fp16.precision = FloatType::fp16;
  Steps together{.train = fp16, .count = 10},
      alone{.all = Cluster::alone(), .train = fp16, .count = 10};
  together.model.factor = alone.model.factor = 1e35;
  together.run();
  alone.run();
  EXPECT_LT(together.scale.factor, LossScale::kInitial);
  EXPECT_EQ(together.scale.factor, alone.scale.factor);
  for (std::size_t i = 0; i < alone.ends.size(); ++i)
    EXPECT_EQ(together.ends[i].rejected, alone.ends[i].rejected);
}

TEST(RanksStep, IgnoresParametersWithoutGradient) {
  Steps steps;
  steps.run();
  EXPECT_EQ(steps.model.value("idle"), 1);  // weight decay would have changed it
  EXPECT_NE(steps.model.value("odd"), 1);   // each of four ranks still has an odd image
}

TEST(RanksStep, RejectsBadImageOnAllRanks) {
  Steps steps{.count = 1};
  steps.model.bad_image = 3;
  steps.run();
  EXPECT_EQ(steps.ends[0].rejected, "the loss 'fit' is inf");
  EXPECT_EQ(steps.model.value("w"), 1);
  EXPECT_EQ(steps.model.value("seen"), 0);
}

TEST(RanksStep, SharesStatisticsAndPadding) {
  Steps steps{.count = 1};
  steps.run();
  EXPECT_EQ(steps.model.value("seen"), 0);  // the first image of rank 0
  const auto last = static_cast<int>(kImages - kImages / cluster->size());
  EXPECT_EQ(steps.model.sizes, (std::vector{std::pair(9, 2 + last)}));
}

TEST(RanksStep, WorksIfOneRankHasNoObjects) {
  const std::set<std::int64_t> lost{1, 3};  // rank 0 has only even images
  expect_steps_of_one_process({.lost = lost}, {.all = Cluster::alone(), .lost = lost});
}

TEST(RanksStep, RejectsLossMissingOnOneRank) {
  if (cluster->size() == 1) GTEST_SKIP() << "one rank has all images";
  Steps steps{.lost = {1, 3}};
  steps.model.leaves_out_odd = true;
  EXPECT_THAT(message_of([&] { steps.run(); }), HasSubstr("[images, odd images]"));
}

/// Expects every metric of every step and every final value to be bit-identical to those of one
/// process.
void expect_same_bytes(const OptimizerOptions& optimizer, TrainOptions train, std::int64_t parts) {
  Steps together{.train = train, .optimizer = optimizer, .parts = parts},
      alone{.all = Cluster::alone(), .train = train, .optimizer = optimizer, .parts = parts};
  for (auto* steps : {&together, &alone}) {
    steps->model.normalises = true;
    steps->run();
  }
  for (std::size_t i = 0; i < alone.ends.size(); ++i) {
    ASSERT_EQ(together.ends[i].scalars.size(), alone.ends[i].scalars.size());
    for (std::size_t k = 0; k < alone.ends[i].scalars.size(); ++k) {
      EXPECT_EQ(together.ends[i].scalars[k].name, alone.ends[i].scalars[k].name);
      EXPECT_EQ(together.ends[i].scalars[k].value, alone.ends[i].scalars[k].value)
          << alone.ends[i].scalars[k].name << " of step " << i;
    }
  }
  ASSERT_EQ(together.values.size(), alone.values.size());
  for (std::size_t i = 0; i < alone.values.size(); ++i)
    EXPECT_EQ(bytes_of(together.values[i].second), bytes_of(alone.values[i].second))
        << alone.values[i].first;
}

TEST(MicroBatches, GiveSameBytesForAnyRankCount) {
  at::set_num_threads(1);
  TrainOptions train;
  train.micro_batch = 1;
  for (const OptimizerOptions& options : {OptimizerOptions{.weight_decay = 0.1},
                                          {.weight_decay = 0.1, .clip_norm = 0.5},
                                          {.type = OptimizerType::adamw, .weight_decay = 0.1},
                                          {.weight_decay = 0.1, .trust = Trust::lars}})
    expect_same_bytes(options, train, /*parts=*/1);
  expect_same_bytes({.weight_decay = 0.1}, train, /*parts=*/2);
  if (cluster->size() == 4) return;
  train.micro_batch = 2;
  expect_same_bytes({.weight_decay = 0.1}, train, /*parts=*/2);
}

TEST(MicroBatches, RejectDetectorWithRunningStatistics) {
  Steps steps;
  steps.train.micro_batch = 1;
  EXPECT_THAT(message_of([&] { steps.run(); }), HasSubstr("train.micro_batch = 0"));
}

TEST(MicroBatches, MatchStepOfRemainingImages) {
  at::set_num_threads(1);
  for (const std::set<std::int64_t>& lost : {std::set<std::int64_t>{3}, {0, 7}, {1, 2, 4}})
    for (const std::int64_t parts : {1, 2})
      for (const std::int64_t size : {1, 2, 3})
        for (const std::int64_t passes : {1, 2, 4}) {
          if (parts * cluster->size() > 4) continue;  // a rank would have no image
          TrainOptions train;
          train.micro_batch = size;
          train.passes = passes;
          Steps cut{.train = train, .parts = parts, .count = 3, .lost = lost},
              whole{.all = Cluster::alone(), .parts = parts, .count = 3, .lost = lost};
          // Batch norm would normalise each pass separately.
          for (auto* steps : {&cut, &whole})
            steps->model.normalises = passes == 1, steps->model.keeps_last = false;
          SCOPED_TRACE(fmt::format("{} lost, accumulate = {}, micro_batch = {}, passes = {}",
                                   lost.size(), parts, size, passes));
          expect_steps_of_one_process(std::move(cut), std::move(whole));
        }
}

TEST(MicroBatches, GiveSameBytesIfImagesAreLost) {
  at::set_num_threads(1);
  TrainOptions train;
  train.micro_batch = 2;
  std::vector<std::string> bytes;
  for (int time = 0; time < 2; ++time) {
    Steps steps{.train = train, .lost = {1, 2, 4}};
    steps.model.normalises = true;
    steps.run();
    std::string all;
    for (const auto& [name, value] : steps.values) all += bytes_of(value);
    bytes.push_back(all);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(GradientBuckets, GiveSameSumsForAnySize) {
  if (cluster->size() == 1) GTEST_SKIP() << "one rank has nothing to reduce";
  const auto sync = make_gradient_sync(at::kCPU, *cluster);
  for (const std::int64_t bytes : {4, 40, 1 << 20}) {
    Parameters parameters;
    std::vector<at::Tensor> values;
    for (std::int64_t i = 1; i < 6; ++i)
      values.push_back(parameters.add(std::to_string(i), at::ones({i, i}), ParameterKind::weight));
    GradientBuckets buckets(parameters, *sync, at::kFloat, 4, bytes);
    EXPECT_EQ(buckets.count(), bytes == 4 ? 5 : bytes == 40 ? 4 : 2);
    for (int repeat = 0; repeat < 2; ++repeat) {
      // Rank r has a gradient of 10 r + i for each parameter i except the r-th and the fourth. No
      // rank has a gradient for the fourth.
      auto loss = values[0].sum() * 0;
      for (std::int64_t i = 0; i < 5; ++i)
        if (i != 3 && i != cluster->rank())
          loss = loss + values[static_cast<std::size_t>(i)].sum() *
                            static_cast<double>(10 * cluster->rank() + i);
      buckets.begin_group(0, /*is_last=*/true);
      loss.backward();
      const auto present = buckets.finish();
      EXPECT_EQ(present[3], '0');
      if (cluster->rank() > 0) {
        EXPECT_EQ(present[static_cast<std::size_t>(cluster->rank())], '0');
      }
      buckets.set_gradients("11101");
      EXPECT_FALSE(values[3].grad().defined());
      for (std::int64_t i = 0; i < 5; ++i) {
        if (i == 3) continue;
        double expected = 0;
        for (std::int64_t rank = 0; rank < cluster->size(); ++rank)
          if (i != rank) expected += static_cast<double>(10 * rank + i);
        EXPECT_TRUE(tensors_equal(values[static_cast<std::size_t>(i)].grad(),
                                  at::full({i + 1, i + 1}, expected)))
            << i;
      }
      for (auto& value : values) value.mutable_grad().reset();
    }
  }
}

TEST(ShareValues, BroadcastsValuesOfRank0) {
  const auto value = at::full({2, 3}, 0.5 + static_cast<double>(cluster->rank()));
  broadcast_values(*cluster, {{"a", value}}, "the model");
  EXPECT_TRUE(tensors_equal(value, at::full({2, 3}, 0.5)));
}

TEST(ShareValues, ReportsRankAndTensorThatDiffer) {
  if (cluster->size() == 1) GTEST_SKIP() << "a single rank cannot differ";
  const auto value = at::zeros({2});
  if (cluster->rank() == 1) value[1].fill_(-0.0);
  check_same_values(*cluster, {{"a", at::ones({3})}}, "the model");
  EXPECT_THAT(message_of([&] {
                check_same_values(*cluster, {{"a", at::ones({3})}, {"b", value}}, "the model");
              }),
              AllOf(HasSubstr(cluster->name(1)), HasSubstr("values in 'b' of the model")));
  const NamedTensors values = {{"a", at::zeros({2 + (cluster->rank() == 1)})}};
  EXPECT_THAT(message_of([&] { broadcast_values(*cluster, values, "the model"); }),
              AllOf(HasSubstr(cluster->name(1)), HasSubstr("shape for 'a' of the model")));
}

}  // namespace
}  // namespace millrace::testing
