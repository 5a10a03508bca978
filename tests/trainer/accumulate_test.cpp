// A step over several batches, or over one batch in several passes, equals a step over one large
// batch; metrics are computed on request.
#include <ATen/ops/full.h>
#include <gmock/gmock.h>

#include <atomic>

#include "millrace/base/errors.h"
#include "millrace/models/detector/metrics.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "tests/support/fake_training.h"
#include "tests/support/scratch.h"
#include "tests/support/tensors.h"
#include "tests/support/thrown.h"

namespace millrace::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The loss is the mean over images of (w - id)^2, each weighted by a random number; images with id
/// 3 do not count.
class MeanDetector final : public Detector {
 public:
  MeanDetector() { w_ = parameters_.add("w", at::full({1}, 1.0), ParameterKind::weight); }

  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    ++passes;
    auto sum = w_.sum() * 0;
    double count = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const auto id = static_cast<double>(batch.images[i].image_id);
      if (id == 3) continue;
      sum = sum + (w_ - id).square().sum() * step.rng(/*stream=*/1, i).uniform();
      count += 1;
    }
    if (step.metrics) step.metrics->add("counted", count, static_cast<double>(batch.size()));
    return {{"fit", sum, {"images that count", count}}};
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return {};
  }
  const Parameters& parameters() const override { return parameters_; }

  std::atomic<int> passes = 0;  // atomic, since micro-batches are computed in parallel

 private:
  Parameters parameters_;
  at::Tensor w_;
};

Batch batch_of(std::initializer_list<std::int64_t> ids) {
  Batch batch;
  for (const auto id : ids) batch.images.push_back({.image_id = id});
  batch.objects.resize(ids.size());
  return batch;
}

/// Returns the metrics and the weight after a step.
std::pair<StepMetrics, double> after_step(const std::vector<Batch>& batches,
                                          const TrainOptions& train = {}) {
  MeanDetector model;
  TrainingStep step(model, train, {.weight_decay = 0});
  LossScale scale;
  Metrics metrics;
  auto end = step(batches, {.seed = 5, .step = 7, .metrics = &metrics}, 0.1, scale);
  return {end.scalars, model.parameters().find("w")->value.item<double>()};
}

TEST(Accumulate, MatchesOneLargeBatch) {
  const auto [scalars, weight] = after_step({batch_of({1, 2, 3, 4})});
  for (const auto& parts : {std::vector{batch_of({1, 2}), batch_of({3, 4})},
                            {batch_of({1}), batch_of({2}), batch_of({3}), batch_of({4})},
                            {batch_of({1, 2, 3}), batch_of({4})}}) {
    const auto [own, value] = after_step(parts);
    EXPECT_NEAR(value, weight, 1e-6);
    ASSERT_EQ(own.size(), scalars.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_EQ(own[i].name, scalars[i].name);
      EXPECT_NEAR(own[i].value, scalars[i].value, 1e-5) << own[i].name;
    }
  }
}

TEST(Passes, ChangeOnlyRounding) {
  const auto batch = batch_of({1, 2, 3, 4, 5});
  const auto [scalars, weight] = after_step({batch});
  // 8 is more than the number of images, so each image is a pass
  for (const std::int64_t passes : {2, 3, 5, 8}) {
    TrainOptions train;
    train.passes = passes;
    const auto [own, value] = after_step({batch}, train);
    EXPECT_NEAR(value, weight, 1e-6);
    ASSERT_EQ(own.size(), scalars.size());
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_NEAR(own[i].value, scalars[i].value, 1e-5) << own[i].name;
  }
}

TEST(Passes, GiveSameBitsForMicroBatches) {
  const std::vector<Batch> batches(2, batch_of({1, 2, 3, 4, 5, 6, 7, 8}));
  TrainOptions train;
  train.micro_batch = train.threads = 1;
  const auto [scalars, weight] = after_step(batches, train);
  for (const std::int64_t passes : {2, 3, 8}) {
    train.passes = passes;
    const auto [own, value] = after_step(batches, train);
    EXPECT_EQ(value, weight);
    ASSERT_EQ(own.size(), scalars.size());
    for (std::size_t i = 0; i < own.size(); ++i)
      EXPECT_EQ(own[i].value, scalars[i].value) << own[i].name;
  }
}

TEST(Passes, HandleShortBatchesInMicroBatches) {
  for (const auto& batches : {std::vector{batch_of({1, 2, 3, 4}), batch_of({5, 6, 7})},
                              {batch_of({1, 2, 3}), batch_of({4, 5, 6, 7})},
                              {batch_of({1, 2, 4, 5, 6})},
                              {batch_of({1}), batch_of({2, 4, 5, 6})}}) {
    const auto [scalars, weight] = after_step(batches);
    for (const std::int64_t size : {1, 2, 3, 5})
      for (const std::int64_t passes : {1, 2, 3}) {
        TrainOptions train;
        train.micro_batch = size;
        train.threads = 1;
        train.passes = passes;
        const auto [own, value] = after_step(batches, train);
        EXPECT_NEAR(value, weight, 1e-6);
        ASSERT_EQ(own.size(), scalars.size());
        for (std::size_t i = 0; i < own.size(); ++i)
          EXPECT_NEAR(own[i].value, scalars[i].value, 1e-5) << own[i].name;
      }
  }
}

TEST(Accumulate, CountsBatchesAndScalesRate) {
  const auto rate = [](std::int64_t accumulate) {
    const Scratch scratch;
    MeanDetector model;
    auto plan = fake_plan(model, scratch / "run");
    plan.optimizer.accumulate = accumulate;
    plan.images_per_step = 2 * accumulate;
    plan.train.max_steps = 3;
    plan.schedule = {.type = ScheduleType::constant, .warmup = "0 steps"};
    Position at;
    double lr = 0;
    train(plan, [&](LambdaCallback& c) {
      c.on_after_step = [&](const TrainState& s) { at = s.at, lr = s.lr; };
    });
    EXPECT_EQ(at.images, 6 * accumulate);
    EXPECT_EQ(at.cursor.next, 6 * accumulate);
    EXPECT_DOUBLE_EQ(at.progress, 0.6 * static_cast<double>(accumulate));
    EXPECT_EQ(model.passes, 3 * (2 * accumulate - 1)) << "two per batch except the first";
    return lr;
  };
  EXPECT_DOUBLE_EQ(rate(1) * 2, rate(2));
}

TEST(Accumulate, ResumesAfterLastBatch) {
  const Scratch scratch;
  const auto train = [&](const std::string& name, std::int64_t steps) {
    MeanDetector model;
    auto plan = fake_plan(model, scratch / name);
    plan.optimizer.type = OptimizerType::adamw;
    plan.optimizer.accumulate = 3;
    plan.images_per_step = 6;
    plan.train.max_steps = steps;
    const auto end = train_saving(plan);
    return std::tuple(model.parameters().find("w")->value.item<double>(), end.at.images,
                      end.at.cursor.next);
  };
  const auto whole = train("whole", 4);
  train("halves", 2);
  EXPECT_EQ(train("halves", 4), whole);
  EXPECT_EQ(std::get<1>(whole), 24);
}

TEST(Accumulate, FindsFp16LossScale) {
  const Scratch scratch;
  MeanDetector model;
  auto plan = fake_plan(model, scratch / "run");
  plan.train.precision = FloatType::fp16;
  plan.optimizer.accumulate = 2;
  plan.optimizer.clip_norm = 0;
  plan.images_per_step = 4;
  plan.optimizer.lr = 1e-3;
  const auto end = Trainer(plan, {}).run();
  EXPECT_EQ(end.at.bad_steps, 0);
  EXPECT_GT(model.parameters().find("w")->value.item<double>(), 1);
}

/// Returns the total count by which the trainer divides losses whose divisor is `name`.
double total_of(const StepTotals& totals, const std::string& name) {
  return 1 / totals.means({{"loss", at::full({1}, 1.0, at::kDouble), {name, 0}}})[0]
                 .second.item<double>();
}

// 0.1 + 0.2 + 0.3 and 0.3 + 0.1 + 0.2 differ in one bit.
TEST(StepTotals, AddGroupsInOrder) {
  StepTotals totals(Cluster::alone());
  totals.add({{{"a", 0.2}, {"b", 1}}});
  totals.add({{{"a", 0.3}, {"b", 2}}});
  totals.complete({{{"a", 0.1}, {"b", 4}}});
  EXPECT_EQ(total_of(totals, "a"), 1 / (1 / (0.1 + 0.2 + 0.3)));
  EXPECT_EQ(total_of(totals, "b"), 7);
  EXPECT_THROW(total_of(totals, "c"), Error);
}

TEST(StepTotals, AddMicroBatchesAsTree) {
  StepTotals totals(Cluster::alone());
  totals.complete({{{"a", 0.1}}, {{"a", 0.2}}, {{"a", 0.3}}, {{"a", 0.4}}});
  EXPECT_EQ(total_of(totals, "a"), 1 / (1 / ((0.1 + 0.2) + (0.3 + 0.4))));
}

TEST(StepTotals, RejectBatchesWithDifferentCountNames) {
  StepTotals members(Cluster::alone()), groups(Cluster::alone());
  EXPECT_THROW(members.add({{{"a", 1}}, {{"b", 1}}}), Error);
  groups.add({{{"a", 1}}});
  EXPECT_THROW(groups.complete({{{"a", 1}, {"b", 1}}}), Error);
}

TEST(Metrics, AreRatiosOfNonEmptySums) {
  Metrics metrics;
  metrics.add("a", 1, 2);
  metrics.add("none", 0, 0);
  metrics.add("a", 2, 10);
  std::vector<double> values;
  for (const auto& number : metrics.numbers()) values.push_back(number.item<double>());
  EXPECT_THAT(metric_values(metrics.sums(values.data())),
              ElementsAre(std::pair(std::string("a"), 0.25)));
}

TEST(Metrics, AreComputedOnRequest) {
  const auto trained = [](bool asks) {
    const Scratch scratch;
    MeanDetector model;
    auto plan = fake_plan(model, scratch / "run");
    std::vector<std::int64_t> steps;
    train(plan, [&](LambdaCallback& c) {
      c.on_before_step = [&](const TrainState& s) {
        if (asks && s.at.step % 4 == 1) s.request_metrics();
      };
      c.on_after_step = [&](const TrainState& s) {
        for (const auto& [name, value, kind] : s.scalars)
          if (name == "counted") steps.push_back(s.at.step);
      };
    });
    return std::pair(model.parameters().find("w")->value.detach().clone(), steps);
  };
  const auto [with, steps] = trained(true);
  const auto [without, none] = trained(false);
  EXPECT_THAT(steps, ElementsAre(2, 6, 10, 14));
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(tensors_equal(with, without));
}

}  // namespace
}  // namespace millrace::testing
