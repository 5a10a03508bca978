#include "millrace/models/maskrcnn/box_stages.h"
#include "millrace/models/detector/loss_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include "tests/models/operators.h"

namespace millrace::testing {
namespace {

constexpr std::int64_t kChannels = 4, kClasses = 2;

class Cascade : public ::testing::Test {
 protected:
  /// Three class-agnostic stages over a pyramid of random values for one 64 x 64 image.
  Cascade() {
    options_.fg_iou_thresh = {0.5, 0.6, 0.7};
    options_.bbox_reg_weights = {10, 10, 5, 5, 20, 20, 10, 10, 30, 30, 15, 15};
    options_.head.fc_dim = 8;
    options_.head.cls_agnostic_bbox_reg = true;
    stages_.emplace(Scope(parameters_, 1) / "roi_heads", options_, BoxOptions{}, PoolOptions{},
                    kChannels, kClasses, /*first=*/0);
    features_.padded = {64, 64};
    features_.sizes = {{64, 64}};
    for (const std::int64_t side : {16, 8, 4, 2, 1})
      features_.maps.push_back(random_values({1, kChannels, side, side}, -1, 1, 7));
  }

  void fill(const std::string& name, const at::Tensor& value) {
    const at::NoGradGuard no_grad;
    at::Tensor(parameters_.find("roi_heads." + name)->value).copy_(value);
  }

  /// Returns the regions sampled from one image's proposals [P, 4].
  static SampledRegions sampled_from(const BoxStages& stages, const at::Tensor& proposals,
                                     const Truth& truth) {
    const auto candidates =
        stages.candidates({proposals.unsqueeze(0), longs({proposals.size(0)})}, {truth});
    const StepInfo step;
    return select_sampled(candidates,
                          sample_candidates({stages.sampling_task(candidates, step)})[0]);
  }

  BoxStagesOptions options_;
  Parameters parameters_;
  std::optional<BoxStages> stages_;
  Features features_;
};

TEST_F(Cascade, AveragesProbabilitiesOverStages) {
  const at::NoGradGuard no_grad;
  at::Tensor expected = at::zeros({kClasses});
  for (int stage = 0; stage < 3; ++stage) {
    const auto predictor = "box_predictor." + std::to_string(stage);
    fill(predictor + ".bbox_pred.weight", at::zeros({4, 8}));
    fill(predictor + ".cls_score.weight", at::zeros({3, 8}));
    const auto bias = random_values({3}, -1, 1, static_cast<std::uint64_t>(stage));
    fill(predictor + ".cls_score.bias", bias);
    expected += at::softmax(bias, 0).narrow(0, 0, kClasses) / 3;
  }
  const auto proposals = boxes_of({1, 2, 30, 40, 35, 5, 60, 60});
  const auto found = stages_->detect(features_, {proposals}, DetectionOptions{})[0];
  ASSERT_EQ(found.boxes.size(0), 4);
  for (std::int64_t d = 0; d < 4; ++d) {
    const auto label = found.labels[d].item<std::int64_t>();
    EXPECT_TRUE(tensors_close(found.scores[d], expected[label], 1e-6));
    EXPECT_TRUE(tensors_close(found.boxes[d], proposals[0], 1e-5) ||
                tensors_close(found.boxes[d], proposals[1], 1e-5));
  }
}

TEST_F(Cascade, HasFiniteLossesWithoutObjectsOrRegions) {
  const Truth nothing{.boxes = at::zeros({0, 4}), .labels = at::zeros({0}, at::kLong)};
  for (const std::int64_t count : {0, 10}) {
    const auto regions = sampled_from(*stages_, random_boxes(count, 40, 20, 3), nothing);
    EXPECT_EQ(regions.truth.size(0), 0);
    const auto losses = means_of(stages_->losses(features_, regions, {nothing}, {}));
    ASSERT_EQ(losses.size(), 6U);
    EXPECT_EQ(losses[4].first, "loss_classifier_stage2");
    for (const auto& [name, loss] : losses) EXPECT_TRUE(loss.isfinite().item<bool>()) << name;
  }
}

TEST_F(Cascade, AveragesGradientsOverStages) {
  const Truth truth{.boxes = boxes_of({5, 5, 30, 30}), .labels = at::zeros({1}, at::kLong)};
  // A single stage with the weights of the cascade's first stage.
  auto single = options_;
  single.fg_iou_thresh = {0.5};
  single.bbox_reg_weights = {10, 10, 5, 5};
  Parameters parameters;
  const BoxStages alone(Scope(parameters, 1) / "roi_heads", single, BoxOptions{}, PoolOptions{},
                        kChannels, kClasses, 0);
  for (const auto& parameter : parameters) {
    const at::NoGradGuard no_grad;
    auto name = parameter.name;
    for (const std::string part : {"box_head.", "box_predictor."})
      if (const auto place = name.find(part); place != std::string::npos)
        name.insert(place + part.size(), "0.");
    at::Tensor(parameter.value).copy_(parameters_.find(name)->value);
  }
  const auto regions = sampled_from(alone, random_boxes(20, 40, 20, 3), truth);
  const auto gradient = [&](const BoxStages& stages) {
    auto features = features_;
    for (auto& map : features.maps) map = map.clone().requires_grad_();
    const auto losses = means_of(stages.losses(features, regions, {truth}, {}));
    (losses[0].second + losses[1].second).backward();
    return features.maps[0].grad();
  };
  EXPECT_TRUE(tensors_close(gradient(*stages_) * 3, gradient(alone), 1e-5));
}

TEST(RegionSamples, ListForegroundFirst) {
  const std::vector<Truth> truths{
      {.boxes = boxes_of({0, 0, 10, 10}), .labels = at::zeros({1}, at::kLong)},
      {.boxes = boxes_of({1, 1, 5, 5, 50, 50, 61, 61}), .labels = at::zeros({2}, at::kLong)}};
  const auto boxes = boxes_of({50, 50, 60, 60, 0, 0, 10, 9, 1, 1, 3, 3});
  const auto valid = longs({1, 1, 1, 1, 1, 0}).to(at::kBool).view({2, 3});
  const auto candidates = match_regions(boxes.expand({2, 3, 4}), valid, truths, 0.5, 0);
  EXPECT_TRUE(tensors_equal(candidates.matches.label,
                            at::tensor({0, 1, 0, 1, 0, -1}, at::kChar).view({2, 3})));
  const auto regions = select_sampled(
      candidates,
      sample_candidates({{candidates.matches.label, 3, 3, [](std::size_t) { return Rng{1}; }}})[0]);
  const auto rows = longs({1, 0, 2, 0, 1});
  EXPECT_TRUE(tensors_equal(regions.rois.narrow(1, 1, 4), boxes.index_select(0, rows)));
  EXPECT_TRUE(tensors_equal(regions.rois.select(1, 0), at::tensor({0, 0, 0, 1, 1}, at::kFloat)));
  EXPECT_TRUE(tensors_equal(regions.truth, longs({0, 2})));
  EXPECT_TRUE(tensors_equal(regions.samples.foreground, longs({0, 3})));
  EXPECT_TRUE(tensors_equal(regions.samples.slots, longs({0, 1, 2, 3, 4})));
}

}  // namespace
}  // namespace millrace::testing
