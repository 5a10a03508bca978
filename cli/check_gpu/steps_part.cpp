// Losses and gradients of a step of each detector, on the device and on the CPU.
#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "millrace/base/errors.h"
#include "millrace/cli/check_gpu/part.h"
#include "millrace/dataflow/detection_flows.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/trainer/run/session.h"

namespace millrace::cli {
namespace {

constexpr double kMostLossError = 1e-4, kMostGradientError = 1e-3;

/// Of one step, on the host.
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

/// The largest relative difference, and what has it.
struct Worst {
  double error = 0;
  std::string name = "none";

  void see(const std::string& of, double one) {
    if (one <= error) return;  // NaN is worse than anything
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
    throw Error(fmt::format("{} gradients, {} on the CPU", found.gradients.size(),
                            expected.gradients.size()));
  double whole = 0;
  for (const auto& [name, gradient] : expected.gradients) whole += std::pow(norm_of(gradient), 2);
  // What is next to nothing beside all the others is not held to a share of itself.
  const double floor = 1e-4 * std::sqrt(whole);
  Worst worst;
  for (std::size_t i = 0; i < expected.gradients.size(); ++i) {
    const auto& [name, gradient] = expected.gradients[i];
    worst.see(name, norm_of(found.gradients[i].second - gradient) / (norm_of(gradient) + floor));
  }
  return worst;
}

bool same(const LossesAndGradients& a, const LossesAndGradients& b) {
  return a.losses == b.losses &&
         std::ranges::equal(a.gradients, b.gradients, [](const auto& one, const auto& other) {
           return one.second.equal(other.second);
         });
}

/// A rounding that decides a tie otherwise (which proposal stays) changes a loss by more than the
/// rounding: of three batches, one may.
void check_detector(PartRun& run, const std::string& name, const Recipe& recipe) {
  const auto data = open_train_data(recipe.data, recipe.sources);
  const auto flow = start_train_flow(recipe.data, recipe.stages, data, /*seed=*/1);
  const auto device = run.device();
  const int batches = run.options.small ? 1 : 3;
  std::vector<double> loss_errors, gradient_errors;
  for (int i = 0; i < batches; ++i) {
    const auto batch = flow->next()->value;
    const auto expected = step_on(at::kCPU, recipe, data.classes, batch, i);
    const auto found = step_on(device, recipe, data.classes, batch, i);
    const auto loss = worst_loss(found, expected), gradient = worst_gradient(found, expected);
    run.report.row("Relative errors of a step", {{"detector", name},
                                                 {"batch", i + 1},
                                                 {"loss", loss.error},
                                                 {"of", loss.name},
                                                 {"gradient", gradient.error},
                                                 {"of ", gradient.name}});
    loss_errors.push_back(std::isnan(loss.error) ? HUGE_VAL : loss.error);
    gradient_errors.push_back(std::isnan(gradient.error) ? HUGE_VAL : gradient.error);
    if (i == 0)
      run.report.check(name + ": the same bytes twice",
                       same(found, step_on(device, recipe, data.classes, batch, i)),
                       "losses and gradients of the first batch");
  }
  const auto middle = [](std::vector<double> errors) {
    std::ranges::sort(errors);
    return errors[errors.size() / 2];
  };
  run.report.check_error(name + ": losses, the middle one of the batches", middle(loss_errors),
                         kMostLossError);
  run.report.check_error(name + ": gradients, the middle one of the batches",
                         middle(gradient_errors), kMostGradientError);
}

}  // namespace

void check_steps(PartRun& run) {
  std::vector<std::string> settings{run.sample_data(), "data.batch_size=2",
                                    "train.deterministic=true"};
  if (run.options.small)
    settings.insert(settings.end(),
                    {"data.short_side=96", "data.max_side=160", "model.backbone.width=16"});
  const auto recipe_of = [&](const std::string& name) {
    return run.recipe("configs/" + name + ".toml", settings);
  };
  const Session session(recipe_of("maskrcnn"));  // threads, determinism and precision of them all
  for (const auto* name : {"maskrcnn", "fasterrcnn", "cascadercnn", "retinanet"}) {
    try {
      check_detector(run, name, recipe_of(name));
    } catch (const std::exception& problem) {
      run.report.check(name, false, std::string("it threw: ") + problem.what());
    }
  }
}

}  // namespace millrace::cli
