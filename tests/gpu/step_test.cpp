// Compares training steps and detections of small detectors on the device with the CPU's.
#include <ATen/ops/isfinite.h>
#include <gmock/gmock.h>

#include <map>

#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/precision.h"
#include "millrace/trainer/run/device.h"
#include "millrace/trainer/training_step.h"
#include "tests/gpu/made_batches.h"
#include "tests/gpu/on_device.h"
#include "tests/models/small_batch.h"

namespace millrace::testing {
namespace {

struct Model {
  std::string kind, more, norm;
  friend void PrintTo(const Model& one, std::ostream* out) {
    *out << one.kind << " " << one.norm << " " << one.more;
  }
};

struct Taken {
  std::map<std::string, double> losses;
  std::map<std::string, at::Tensor> gradients;  // on the CPU
};

/// Returns the losses on small_batch() and their gradients.
Taken take_step(const Model& of, at::Device device, at::ScalarType type = at::kFloat) {
  const auto model = small_detector(of.kind, of.more, of.norm, device);
  const auto flow = upload_ahead(std::make_unique<Made>(small_batch), device);
  const auto batch = flow->next()->value;
  Taken taken;
  at::Tensor total;
  {
    const ComputeIn precision(type, device.type());
    for (const auto& [name, loss] : model->losses(batch, {.seed = 3})) {
      taken.losses[name] = loss.item<double>();
      total = total.defined() ? total + loss : loss;
    }
  }
  total.backward();
  for (const auto& parameter : model->parameters())
    if (const auto& gradient = parameter.value.grad(); gradient.defined()) {
      EXPECT_EQ(gradient.scalar_type(), at::kFloat) << parameter.name;
      taken.gradients[parameter.name] = gradient.cpu();
    }
  return taken;
}

class StepOnDevice : public OnDevice, public ::testing::WithParamInterface<Model> {};

TEST_P(StepOnDevice, MatchesCpuLossesAndGradients) {
  const auto there = take_step(GetParam(), device_), here = take_step(GetParam(), at::kCPU);
  ASSERT_EQ(there.losses.size(), here.losses.size());
  for (const auto& [name, loss] : here.losses)
    EXPECT_NEAR(there.losses.at(name), loss, 1e-4 * std::max(1.0, std::abs(loss))) << name;
  ASSERT_EQ(there.gradients.size(), here.gradients.size());
  for (const auto& [name, gradient] : here.gradients)
    EXPECT_TRUE(tensors_close(there.gradients.at(name), gradient, 1e-3)) << name;
}

TEST_P(StepOnDevice, IsBitwiseReproducible) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const auto first = take_step(GetParam(), device_), second = take_step(GetParam(), device_);
  at::globalContext().setDeterministicAlgorithms(false, /*warn_only=*/true);
  EXPECT_EQ(first.losses, second.losses);
  for (const auto& [name, gradient] : first.gradients)
    EXPECT_TRUE(tensors_equal(second.gradients.at(name), gradient)) << name;
}

TEST_P(StepOnDevice, ReturnsFiniteValuesInHalfPrecision) {
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto taken = take_step(GetParam(), device_, type);
    for (const auto& [name, loss] : taken.losses)
      EXPECT_TRUE(std::isfinite(loss)) << type << " " << name;
    for (const auto& [name, gradient] : taken.gradients)
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << type << " " << name;
  }
}

/// Compares only the scores, since objects with nearly equal scores may swap.
TEST_P(StepOnDevice, MatchesCpuDetections) {
  const auto& [kind, more, norm] = GetParam();
  const auto detections = [&](at::Device device) {
    const auto model = small_detector(kind, more + kEverything, norm, device);
    std::vector<std::vector<float>> scores;
    for (const auto& objects : model->detect(small_batch())) {
      auto& own = scores.emplace_back();
      for (const auto& object : objects) own.push_back(object.score);
    }
    return scores;
  };
  const auto there = detections(device_), here = detections(at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    EXPECT_FALSE(here[i].empty());
    EXPECT_THAT(there[i], ::testing::Pointwise(::testing::FloatNear(1e-3F), here[i]));
  }
}

std::vector<Model> models() {
  std::vector<Model> all;
  for (const auto& [kind, more] : small_kinds()) all.push_back({kind, more, "frozen_bn"});
  all.push_back({"retinanet", "", "sync_bn"});  // without ranks, this is batch norm
  return all;
}

INSTANTIATE_TEST_SUITE_P(Detectors, StepOnDevice, ::testing::ValuesIn(models()),
                         [](const auto& one) {
                           return one.param.kind + std::to_string(one.index);
                         });

TEST_F(OnDevice, MatchesCpuOverSeveralSteps) {
  const auto train = [](at::Device device) {
    const auto model =
        small_detector("maskrcnn", kFewRegions + "mask.conv_dim = 8\n", "frozen_bn", device);
    TrainingStep step(*model, {}, {}, Cluster::alone());
    const auto flow = upload_ahead(std::make_unique<Made>(small_batch), device);
    LossScale scale;
    std::vector<double> losses;
    for (int i = 0; i < 3; ++i) {
      const auto batch = flow->next()->value;
      for (const auto& [name, value, kind] :
           step({&batch, 1}, {.seed = 3, .step = i}, 0.01, scale).scalars)
        if (name == "loss") losses.push_back(value);
    }
    return losses;
  };
  const auto there = train(device_), here = train(at::kCPU);
  ASSERT_EQ(there.size(), here.size());
  for (std::size_t i = 0; i < here.size(); ++i)
    EXPECT_NEAR(there[i], here[i], 1e-3 * here[i]) << "step " << i;
}

}  // namespace
}  // namespace millrace::testing
