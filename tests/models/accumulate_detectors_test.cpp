// For every detector, a step in micro-batches has the same losses, metrics and gradients as a step
// on the whole batch.
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include <map>

#include "millrace/dataflow/detection_flows.h"
#include "millrace/dataflow/sources/train_data.h"
#include "millrace/trainer/training_step.h"
#include "tests/models/known_counts.h"
#include "tests/models/small_batch.h"
#include "tests/support/data.h"

namespace millrace::testing {
namespace {

/// State after the first step. `gradients` is the momentum, which equals the gradients after one
/// step.
struct AfterStep {
  std::map<std::string, double> scalars;
  NamedTensors gradients, values;
};

AfterStep after_step(Detector& model, const std::vector<Batch>& batches, bool with_metrics = true) {
  TrainingStep step(model, {}, {.weight_decay = 0});
  LossScale scale;
  Metrics metrics;
  const auto end = step(
      batches, {.seed = 3, .step = 11, .metrics = with_metrics ? &metrics : nullptr}, 0.01, scale);
  EXPECT_EQ(end.rejected, "");
  AfterStep result{{}, step.optimizer().state(), copies_of(model)};
  for (const auto& [name, value, kind] : end.scalars) result.scalars.emplace(name, value);
  return result;
}

/// Returns true if the metric is a count per image, not a ratio.
bool is_count(const std::string& name) {
  return name.find("/bg") != std::string::npos || (name.ends_with("/fg") && name != "mask/fg") ||
         name.find("/fg_stage") != std::string::npos;
}

class MicroBatches : public ::testing::TestWithParam<SmallKind> {
 protected:
  void expect_equal_steps(const Batch& whole, double rounding) const {
    const auto model = [&] {
      return small_detector(GetParam().name, GetParam().more, "frozen_bn");
    };
    const auto expected = after_step(*model(), {whole});
    for (const std::size_t size : {1U, 2U}) {
      SCOPED_TRACE(size);
      const auto actual = after_step(*model(), parts_of(whole, size));
      EXPECT_EQ(actual.scalars.size(), expected.scalars.size());
      for (const auto& [name, value] : actual.scalars)
        EXPECT_NEAR(value, expected.scalars.at(name), rounding * (1 + std::abs(value))) << name;
      for (std::size_t i = 0; i < actual.gradients.size(); ++i)
        EXPECT_TRUE(
            tensors_close(actual.gradients[i].second, expected.gradients[i].second, rounding))
            << actual.gradients[i].first;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(ByName, MicroBatches, ::testing::ValuesIn(small_kinds()), title_of);

TEST_P(MicroBatches, MatchWholeBatch) { expect_equal_steps(four_images(), 1e-4); }

TEST_P(MicroBatches, MatchWholeBatchOfPhotos) {
  MILLRACE_NEEDS_DATA("coco_mini");
  DataOptions options;
  options.root = (data_folder() / "coco_mini").string();
  options.batch_size = 4;
  options.short_side = {96};
  options.max_side = 128;
  options.train = options.val;
  const auto flow = start_train_flow(options, {}, open_train_data(options, {}), /*seed=*/1);
  auto batch = flow->next()->value;
  for (auto& objects : batch.objects)
    for (auto& label : objects.classes) label %= 3;  // the small detector has three classes
  expect_equal_steps(batch, 1e-3);
}

TEST_P(MicroBatches, LearnSameWeightsIfMetricsAreRecorded) {
  const auto model = [&] { return small_detector(GetParam().name, GetParam().more); };
  const auto with = after_step(*model(), {small_batch()}),
             without = after_step(*model(), {small_batch()}, /*with_metrics=*/false);
  EXPECT_GT(with.scalars.size(), without.scalars.size());
  for (const auto& [name, value] : with.scalars) {
    if (without.scalars.contains(name)) {
      EXPECT_EQ(value, without.scalars.at(name)) << name;
    } else if (!is_count(name)) {
      EXPECT_TRUE(value >= 0 && value <= 1) << name << " " << value;
    }
  }
  expect_same(with.values, without.values);
}

// A step of several micro-batches begins with a pass without gradients.
TEST_P(MicroBatches, KeepRunningStatisticsInNoGradMode) {
  const auto model = small_detector(GetParam().name, GetParam().more);
  const auto before = copies_of(*model);
  const at::NoGradGuard no_graph;
  model->losses(small_batch(), {});
  expect_same(copies_of(*model), before);
}

TEST_P(MicroBatches, KeepParametersFrozenByRule) {
  const auto model = small_detector(GetParam().name, GetParam().more);
  TrainingStep step(*model, {}, {.groups = {{.match = "backbone.*", .frozen = true}}});
  const auto before = copies_of(*model);
  LossScale scale;
  const std::vector<Batch> batches = {small_batch()};
  EXPECT_EQ(step(batches, {}, 0.1, scale).rejected, "");
  const auto after = copies_of(*model);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const auto& [name, value] = after[i];
    moved += !value.equal(before[i].second);
    if (name.starts_with("backbone.")) {
      EXPECT_TRUE(tensors_equal(value, before[i].second)) << name;
    }
  }
  EXPECT_GT(moved, 0U);
}

/// A detector that does not implement counts().
class WithoutCounts final : public Detector {
 public:
  explicit WithoutCounts(Detector& known) : known_(known) {}
  LossSums compute_losses(const Batch& batch, const StepInfo& step) override {
    return known_.loss_sums(batch, step);
  }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch& batch,
                                                        DetectionNotes*) override {
    return known_.detect(batch);
  }
  const Parameters& parameters() const override { return known_.parameters(); }
  void on_parameters_changed() override { known_.parameters_changed(); }

 private:
  Detector& known_;
};

TEST(KnownCounts, MatchCountingPassByteForByte) {
  for (const auto* norm : {"frozen_bn", "bn"}) {
    const auto model = small_detector("retinanet", "", norm),
               other = small_detector("retinanet", "", norm);
    WithoutCounts without_counts(*other);
    const auto batches = parts_of(four_images(), 1);
    for (int repeat = 0; repeat < 3; ++repeat) {
      const auto known = after_step(*model, batches), counted = after_step(without_counts, batches);
      EXPECT_EQ(known.scalars, counted.scalars);
      expect_same(known.gradients, counted.gradients);
      expect_same(known.values, counted.values);
    }
  }
}

TEST(KnownCounts, MatchRetinaNetLosses) {
  const auto batch = four_images();
  for (const auto* more :
       {"", "style = 'torchvision'\n", "anchors.stride = 'grid'\nfpn.p6_from = 'p5'\n",
        "backbone.type = 'hrnet_w18'\n"})
    for (const cv::Size padded : {cv::Size(), cv::Size(131, 87)}) {
      SCOPED_TRACE(more);
      const auto model = small_detector("retinanet", more, "sync_bn");
      expect_known_counts(*model, batch, {.padded = padded});
      expect_known_counts(*model, part_of(batch, 2, 1), {.padded = padded});  // without objects
    }
}

}  // namespace
}  // namespace millrace::testing
