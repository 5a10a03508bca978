#include "trainer/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "base/errors.h"
#include "base/log.h"
#include "trainer/precision.h"

namespace millrace {
namespace {

/// The values of all losses in one transfer from wherever they live.
std::vector<double> values_of(const Losses& losses) {
  std::vector<at::Tensor> all;
  for (const auto& [name, loss] : losses) all.push_back(loss.detach().reshape({}));
  const auto together = at::stack(all).to(at::kCPU, at::kDouble);
  const auto* first = together.const_data_ptr<double>();
  return {first, first + losses.size()};
}

at::DeviceType device_of(const Detector& model) {
  const auto& parameters = model.parameters();
  return parameters.size() > 0 ? parameters.begin()->value.device().type() : at::kCPU;
}

}  // namespace

TrainingStep::TrainingStep(Detector& model, const TrainOptions& train,
                           const OptimizerOptions& optimizer)
    : model_(model),
      optimizer_(model.parameters(), optimizer),
      type_(precision_type(train.precision)),
      device_(device_of(model)) {
  if (device_ == at::kCPU && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 train.precision);
}

Losses TrainingStep::losses(const Batch& batch, const StepInfo& step) {
  const ComputeIn precision(type_, device_);
  auto losses = losses_of(model_, batch, step);
  if (losses.empty()) throw Error("the detector gave no losses");
  return losses;
}

StepEnd TrainingStep::operator()(const Batch& batch, const StepInfo& step, double lr,
                                 LossScale& scale) {
  const auto named = losses(batch, step);
  auto total = named[0].second.reshape({});
  for (std::size_t i = 1; i < named.size(); ++i) total = total + named[i].second.reshape({});
  const bool scaled = type_ == at::kHalf;
  const double factor = scaled ? scale.factor : 1;
  (scaled ? total * factor : total).backward();

  StepEnd end;
  const auto values = values_of(named);
  double sum = 0;
  for (std::size_t i = 0; i < named.size(); ++i) {
    end.scalars.emplace_back(named[i].first, values[i]);
    sum += values[i];
  }
  end.scalars.emplace_back("loss", sum);
  if (scaled) end.scalars.emplace_back("loss_scale", factor);
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    end.rejected = fmt::format("the loss '{}' is {}", named[i].first, values[i]);
    optimizer_.clear_gradients();
    return end;
  }

  const auto done = optimizer_.step(lr, factor);
  end.scalars.emplace_back("gradient_norm", done.gradient_norm);
  if (done.not_finite.empty()) {
    if (scaled) scale.grow();
    return end;
  }
  end.rejected = fmt::format("the gradient of '{}' is not finite", done.not_finite);
  end.overflow = scaled && scale.shrink();
  return end;
}

}  // namespace millrace
