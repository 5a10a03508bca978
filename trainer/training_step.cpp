#include "trainer/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/errors.h"
#include "base/log.h"
#include "trainer/precision.h"

namespace millrace {
namespace {

/// The losses of a step's batches, as they come.
class Sum {
 public:
  void add(const Losses& losses) {
    if (names_.empty())
      for (const auto& [name, loss] : losses) names_.push_back(name);
    if (!std::ranges::equal(losses, names_, {}, &Losses::value_type::first))
      throw Error("the detector gave other losses for one batch of the step than for another");
    for (const auto& [name, loss] : losses) values_.push_back(loss.detach().reshape({}));
  }

  /// Each loss over all batches and what the figures are quotients of, in one transfer from wherever they live.
  void read(const Figures& figures) {
    auto all = values_;
    for (const auto& number : figures.numbers()) all.push_back(number.to(all[0].device()));
    const auto together = at::stack(all).to(at::kCPU, at::kDouble);
    const auto* value = together.const_data_ptr<double>();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i < names_.size()) losses_.emplace_back(names_[i], 0);
      losses_[i % names_.size()].second += value[i];
    }
    figures_ = figures.quotients(value + values_.size());
  }

  const Scalars& losses() const { return losses_; }
  const Scalars& figures() const { return figures_; }

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;  // by batch, then as the names
  Scalars losses_, figures_;
};

at::DeviceType device_of(const Detector& model) {
  const auto& parameters = model.parameters();
  return parameters.size() > 0 ? parameters.begin()->value.device().type() : at::kCPU;
}

/// The whole loss of a batch.
at::Tensor added(const Losses& losses) {
  auto total = losses[0].second.reshape({});
  for (std::size_t i = 1; i < losses.size(); ++i) total = total + losses[i].second.reshape({});
  return total;
}

/// `info` for the batch behind `batch`.
void advance(StepInfo& info, const Batch& batch) {
  info.first_image += static_cast<std::int64_t>(batch.size());
}

}  // namespace

TrainingStep::TrainingStep(Detector& model, const TrainOptions& train,
                           const OptimizerOptions& optimizer)
    : model_(model),
      optimizer_(make_optimizer(model.parameters(), optimizer)),
      type_(precision_type(train.precision)),
      device_(device_of(model)),
      static_scale_(train.loss_scale) {
  if (device_ == at::kCPU && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 train.precision);
  for (const auto& parameter : model.parameters()) {
    if (parameter.kind != ParameterKind::buffer) continue;
    buffers_.push_back(parameter.value.detach());
    buffers_before_.push_back(at::empty_like(buffers_.back()));
  }
}

StepEnd TrainingStep::operator()(std::span<const Batch> batches, StepInfo info, double lr,
                                 LossScale& scale) {
  if (!buffers_.empty()) at::_foreach_copy_(buffers_before_, buffers_);
  auto end = take(batches, info, lr, scale);
  if (!end.rejected.empty() && !buffers_.empty()) {
    at::_foreach_copy_(buffers_, buffers_before_);
    model_.parameters_changed();
  }
  return end;
}

Losses TrainingStep::losses(const Batch& batch, const StepInfo& info) const {
  const ComputeIn precision(type_, device_);
  auto losses = losses_of(model_, batch, info);
  if (losses.empty()) throw Error("the detector gave no losses");
  return losses;
}

void TrainingStep::collect_totals(std::span<const Batch> batches, StepInfo info,
                                  MicroBatchTotals& totals) const {
  const at::NoGradGuard no_graph;
  info.figures = nullptr;
  for (const auto& batch : batches) {
    losses(batch, info);
    advance(info, batch);
  }
  totals.end_first_pass();
}

StepEnd TrainingStep::take(std::span<const Batch> batches, StepInfo info, double lr,
                           LossScale& scale) {
  MicroBatchTotals totals;
  if (batches.size() > 1) {
    info.totals = &totals;
    collect_totals(batches, info, totals);
  }
  const bool scaled = type_ == at::kHalf;
  const double factor = !scaled ? 1 : static_scale_ > 0 ? static_scale_ : scale.factor;
  Sum sum;
  for (const auto& batch : batches) {
    const auto named = losses(batch, info);
    advance(info, batch);
    sum.add(named);
    const auto total = added(named);
    (scaled ? total * factor : total).backward();
  }

  StepEnd end;
  sum.read(info.figures ? *info.figures : Figures());
  end.scalars = sum.losses();
  double whole = 0;
  for (const auto& [name, loss] : sum.losses()) whole += loss;
  end.scalars.emplace_back("loss", whole);
  if (scaled) end.scalars.emplace_back("loss_scale", factor);
  end.scalars.insert(end.scalars.end(), sum.figures().begin(), sum.figures().end());
  for (const auto& [name, loss] : sum.losses()) {
    if (std::isfinite(loss)) continue;
    end.rejected =
        fmt::format("the loss '{}' is {}", name, std::isnan(loss) ? std::abs(loss) : loss);
    optimizer_->clear_gradients();
    return end;
  }

  const auto done = optimizer_->step(lr, factor);
  end.scalars.emplace_back("gradient_norm", done.gradient_norm);
  const bool searches = scaled && static_scale_ == 0;
  if (done.not_finite.empty()) {
    if (searches) scale.grow();
    return end;
  }
  end.rejected = fmt::format("the gradient of '{}' is not finite", done.not_finite);
  if (scaled && !searches)
    end.rejected += fmt::format(" (train.loss_scale = {}: a smaller one may do, or 0)", factor);
  end.overflow = searches && scale.shrink();
  return end;
}

}  // namespace millrace
