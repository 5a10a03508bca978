// For each shipped recipe, compares the losses and gradients of a training step on the device with
// the CPU's.
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/run/session.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/programs.h"
#include "tests/support/tensors.h"

namespace millrace::testing {
namespace {

constexpr double kMostLossError = 1e-4, kMostGradientError = 1e-3;

/// Losses and gradients of one step, on the host.
struct LossesAndGradients {
  std::vector<std::pair<std::string, double>> losses;
  std::vector<std::pair<std::string, at::Tensor>> gradients;
};

LossesAndGradients step_on(at::Device device, const Recipe& recipe,
                           const std::vector<std::string>& classes, const Batch& batch,
                           std::int64_t step) {
  const auto seed = static_cast<std::uint64_t>(recipe.train.seed);
  const auto model = make_detector(recipe.model_type, recipe.model, {classes, seed, device});
  at::Tensor total;
  LossesAndGradients result;
  for (const auto& [name, loss] : model->losses(batch, {.seed = seed, .step = step})) {
    result.losses.emplace_back(name, loss.item<double>());
    total = total.defined() ? total + loss.reshape({}) : loss.reshape({});
  }
  total.backward();
  for (const auto& parameter : model->parameters())
    if (parameter.trainable() && parameter.value.grad().defined())
      result.gradients.emplace_back(parameter.name, parameter.value.grad().cpu());
  return result;
}

double norm_of(const at::Tensor& values) { return values.norm().item<double>(); }

/// The largest relative difference and the name of its tensor.
struct Worst {
  double error = 0;
  std::string name = "none";

  void see(const std::string& of, double one) {
    if (one <= error) return;  // NaN counts as the largest
    error = one, name = of;
  }
};

Worst worst_loss(const LossesAndGradients& found, const LossesAndGradients& expected) {
  Worst worst;
  for (std::size_t i = 0; i < expected.losses.size(); ++i) {
    const auto& [name, value] = expected.losses[i];
    worst.see(name, std::abs(found.losses.at(i).second - value) / std::max(std::abs(value), 1e-2));
  }
  return worst;
}

Worst worst_gradient(const LossesAndGradients& found, const LossesAndGradients& expected) {
  if (found.gradients.size() != expected.gradients.size())
    throw Error(fmt::format("{} gradients on the device, {} on the CPU", found.gradients.size(),
                            expected.gradients.size()));
  double whole = 0;
  for (const auto& [name, gradient] : expected.gradients) whole += std::pow(norm_of(gradient), 2);
  // Gradients that are tiny compared with all others need no relative accuracy.
  const double floor = 1e-4 * std::sqrt(whole);
  Worst worst;
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    const auto& [name, gradient] = expected.gradients[i];
    worst.see(name, norm_of(found.gradients[i].second - gradient) / (norm_of(gradient) + floor));
  }
  return worst;
}

class RecipeStep : public OnDevice, public ::testing::WithParamInterface<const char*> {};

/// If rounding breaks a tie between proposals differently, losses differ by more than rounding, so
/// one of three batches may differ.
TEST_P(RecipeStep, MatchesCpuLossesAndGradients) {
  const auto settings = Words{sample_data(), "data.batch_size=2", "train.deterministic=true"} +
                        on_tested_device() + as_small_as_asked();
  const Session session(  // sets threads, determinism and precision
      resolve(load_config(shipped(fmt::format("configs/{}.toml", GetParam())), settings)));
  const auto& recipe = session.recipe();
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto flow = start_train_flow(recipe.data, recipe.stages, data, /*seed=*/1);
  std::vector<double> loss_errors, gradient_errors;
  for (int i = 0; i < (small_ ? 1 : 3); ++i) {
    const auto batch = flow->next()->value;
    const auto expected = step_on(at::kCPU, recipe, data.classes, batch, i);
    const auto found = step_on(device_, recipe, data.classes, batch, i);
    const auto loss = worst_loss(found, expected), gradient = worst_gradient(found, expected);
    SCOPED_TRACE(fmt::format("batch {}: loss {} off by {:.2g}, gradient {} by {:.2g}", i + 1,
                             loss.name, loss.error, gradient.name, gradient.error));
    EXPECT_TRUE(std::isfinite(loss.error + gradient.error));
    loss_errors.push_back(loss.error), gradient_errors.push_back(gradient.error);
    if (i > 0) continue;
    const auto again = step_on(device_, recipe, data.classes, batch, i);
    EXPECT_EQ(again.losses, found.losses);
    for (std::size_t k = 0; k < found.gradients.size(); ++k)
      EXPECT_TRUE(tensors_equal(again.gradients.at(k).second, found.gradients[k].second))
          << found.gradients[k].first;
  }
  const auto middle = [](std::vector<double> errors) {
    std::ranges::sort(errors);
    return errors[errors.size() / 2];
  };
  EXPECT_LE(middle(loss_errors), kMostLossError) << ::testing::PrintToString(loss_errors);
  EXPECT_LE(middle(gradient_errors), kMostGradientError)
      << ::testing::PrintToString(gradient_errors);
}

INSTANTIATE_TEST_SUITE_P(Recipes, RecipeStep,
                         ::testing::Values("maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace millrace::testing
