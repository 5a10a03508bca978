// Invalid losses and detections are reported with the name of the detector, not as a library error
// or a wrong score.
#include "millrace/models/detector/make_detector.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "millrace/base/errors.h"
#include "millrace/trainer/training_step.h"

namespace millrace::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

/// Returns the losses and detections that a test sets.
class ScriptedDetector final : public Detector {
 public:
  LossSums compute_losses(const Batch&, const StepInfo&) override { return given; }
  std::vector<std::vector<DetectedObject>> find_objects(const Batch&, DetectionNotes*) override {
    return found;
  }
  const Parameters& parameters() const override { return parameters_; }

  LossSums given;
  std::vector<std::vector<DetectedObject>> found;

 private:
  Parameters parameters_;

 public:
  at::Tensor w = parameters_.add("w", at::ones({2}), ParameterKind::weight);
};

MILLRACE_REGISTER(register_detector<ScriptedDetector>("scripted", "returns what a test sets"));

class DetectorContract : public ::testing::Test {
 protected:
  DetectorContract()
      : made_(make_detector("scripted", Config(), {.classes = {"star", "ring"}})),
        model_(static_cast<ScriptedDetector&>(*made_)) {
    batch_.images = {{.image_id = 7, .original_width = 20, .original_height = 10}};
    batch_.objects.resize(1);
  }

  /// Expects the step to fail with an error that contains `part`.
  void expect_loss_error(const LossSums& given, const std::string& part) {
    model_.given = given;
    TrainingStep step(model_, {}, {});
    LossScale scale;
    const std::vector<Batch> batches = {batch_};
    EXPECT_THAT([&] { step(batches, {}, 0.1, scale); },
                ThrowsMessage<Error>(
                    AllOf(StartsWith("detector 'scripted' failed in losses: "), HasSubstr(part))));
  }

  void expect_found_error(std::vector<std::vector<DetectedObject>> found, const std::string& part) {
    model_.found = std::move(found);
    EXPECT_THAT([&] { model_.detect(batch_); },
                ThrowsMessage<Error>(
                    AllOf(StartsWith("detector 'scripted' failed in detect: "), HasSubstr(part))));
  }

  static DetectedObject object() {
    return {.box = {1, 1, 5, 5}, .label = 1, .score = 0.5F, .mask = {10, 20, {200}}};
  }
  static std::vector<std::vector<DetectedObject>> with(
      const std::function<void(DetectedObject&)>& change) {
    auto changed = object();
    change(changed);
    return {{object(), changed}};
  }

  std::unique_ptr<Detector> made_;
  ScriptedDetector& model_;
  Batch batch_;
};

TEST_F(DetectorContract, RejectsInvalidLosses) {
  const auto& w = model_.w;
  const LossDivisor one{"images", 1};
  expect_loss_error({}, "no");
  expect_loss_error({{"fit", w * 2, one}}, "Float of shape (2)");
  expect_loss_error({{"fit", w.sum() > 1, one}}, "Bool of shape ()");
  expect_loss_error({{"fit", w.sum(), one}, {"size", at::Tensor(), one}}, "undefined tensor");
  expect_loss_error({{"fit", w.detach().sum(), one}, {"size", at::zeros({}), one}},
                    "'fit', 'size'");
}

TEST_F(DetectorContract, RejectsContradictoryCounts) {
  const auto sum = model_.w.sum();
  expect_loss_error({{"fit", sum, {"images", 1}}, {"size", sum, {"images", 2}}}, "'images'");
  expect_loss_error({{"fit", sum, {"images", -1}}}, "'images'");
  expect_loss_error({{"fit", sum, {"images", std::numeric_limits<double>::quiet_NaN()}}},
                    "'images'");
}

TEST_F(DetectorContract, DividesByCountOrOne) {
  const auto w = model_.w;  // all ones
  model_.given = {{"four", w.sum(), {"objects", 4}}, {"none", w.sum() * 3, {"regions", 0}}};
  const auto losses = model_.losses(batch_, {});
  EXPECT_EQ(losses[0].second.item<double>(), 0.5);
  EXPECT_EQ(losses[1].second.item<double>(), 6);
}

TEST_F(DetectorContract, AllowsLossesWithoutGradient) {
  const c10::NoGradGuard no_graph;
  model_.given = {{"fit", model_.w.sum(), {"images", 1}}};
  EXPECT_EQ(model_.losses(batch_, {}).size(), 1U);
}

TEST_F(DetectorContract, RejectsInvalidDetections) {
  model_.found = {{object()}};
  EXPECT_EQ(model_.detect(batch_)[0].size(), 1U);
  expect_found_error({}, "0 of 1");
  expect_found_error({{}, {}}, "2 of 1");
  for (const std::int32_t label : {-1, 2})
    expect_found_error(with([&](auto& one) { one.label = label; }),
                       "label " + std::to_string(label));
  expect_found_error(with([](auto& one) { one.score = std::numeric_limits<float>::quiet_NaN(); }),
                     "score");
  expect_found_error(with([](auto& one) { one.box.x2 = std::numeric_limits<float>::infinity(); }),
                     "[1, 1, inf, 5]");
  expect_found_error(with([](auto& one) { one.mask = {20, 10, {200}}; }), "10 x 20");
}

}  // namespace
}  // namespace millrace::testing
