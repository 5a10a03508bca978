#include "millrace/trainer/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <vector>

#include "millrace/base/clock.h"
#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "millrace/trainer/detector/make_detector.h"
#include "millrace/trainer/detector/precision.h"
#include "millrace/trainer/detector/restore.h"

namespace millrace {
namespace {

/// Adds up the losses of a step's batches.
class Sum {
 public:
  explicit Sum(const std::string& title) : title_(title) {}

  void add(const Losses& losses) {
    if (names_.empty())
      for (const auto& [name, loss] : losses) names_.push_back(name);
    if (!std::ranges::equal(losses, names_, {}, &Losses::value_type::first))
      throw Error(title_ + " gave other losses for one batch of the step than for another");
    for (const auto& [name, loss] : losses) values_.push_back(loss.detach().reshape({}));
  }

  /// Each loss over all batches, and the figures, in one transfer from the device; what is on the
  /// host stays there.
  StepReport read(const Figures& figures) const {
    auto all = values_;
    all.insert(all.end(), figures.numbers().begin(), figures.numbers().end());
    std::vector<at::Tensor> there;
    std::ranges::copy_if(all, std::back_inserter(there),
                         [&](const auto& value) { return value.device() == values_[0].device(); });
    const auto together = at::stack(there).to(at::kCPU, at::kDouble);
    const auto* read = together.const_data_ptr<double>();
    std::vector<double> value;
    for (const auto& one : all)
      value.push_back(one.device() == values_[0].device() ? *read++ : one.item<double>());
    StepReport report;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (i < names_.size()) report.losses.emplace_back(names_[i], 0);
      report.losses[i % names_.size()].second += value[i];
    }
    report.figures = figures.sums(value.data() + values_.size());
    return report;
  }

 private:
  const std::string& title_;  // of the detector
  std::vector<std::string> names_;
  std::vector<at::Tensor> values_;  // by batch, then as the names
};

at::DeviceType device_of(const Detector& model) {
  const auto& parameters = model.parameters();
  return parameters.size() > 0 ? parameters.begin()->value.device().type() : at::kCPU;
}

at::Tensor added(const Losses& losses) {
  auto total = losses[0].second.reshape({});
  for (std::size_t i = 1; i < losses.size(); ++i) total = total + losses[i].second.reshape({});
  return total;
}

}  // namespace

/// One batch of a step on this rank.
struct TrainingStep::Part {
  const Batch& batch;
  StepInfo info;
};

TrainingStep::TrainingStep(Detector& model, const TrainOptions& train,
                           const OptimizerOptions& optimizer, const Cluster& cluster)
    : model_(model),
      cluster_(cluster),
      optimizer_(make_optimizer(model.parameters(), optimizer)),
      type_(precision_type(train.precision)),
      device_(device_of(model)),
      static_scale_(train.loss_scale),
      rank_sum_(cluster, device_) {
  if (device_ == at::kCPU && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 train.precision);
  for (const auto& parameter : model.parameters()) {
    if (parameter.kind != ParameterKind::buffer) continue;
    buffers_.push_back(parameter.value.detach());
    buffers_before_.push_back(buffers_.back().clone());
  }
  if (cluster.size() == 1) return;
  sync_ = make_gradient_sync(device_, cluster);
  buckets_.emplace(model.parameters(), *sync_, precision_type(train.gradient_type));
  optimizer_->agree_on_norms([&cluster](std::vector<double>& norms) {
    const auto chiefs = cluster.broadcast(
        "norms", {reinterpret_cast<const char*>(norms.data()), norms.size() * sizeof(double)});
    std::memcpy(norms.data(), chiefs.data(), chiefs.size());
  });
}

void TrainingStep::start_alike() {
  take_chiefs_values(cluster_, named_values(model_), "the model");
  take_chiefs_values(cluster_, optimizer_->state(), "the optimizer");
  tell_parameters_changed(model_);
}

void TrainingStep::check_alike() const {
  check_same_values(cluster_, named_values(model_), "the model");
}

StepEnd TrainingStep::operator()(std::span<const Batch> batches, const StepInfo& info, double lr,
                                 LossScale& scale) {
  const auto agreed = agree_on_step(cluster_, {.batches = sizes_of(batches)});
  return (*this)(batches, agreed.places, info, lr, scale);
}

StepEnd TrainingStep::operator()(std::span<const Batch> batches, std::span<const StepPlace> places,
                                 const StepInfo& info, double lr, LossScale& scale) {
  if (!buffers_.empty()) at::_foreach_copy_(buffers_before_, buffers_);
  StepEnd end;
  take(parts_of(batches, places, info), lr, scale, end);
  if (!end.rejected.empty() && !buffers_.empty()) {
    at::_foreach_copy_(buffers_, buffers_before_);
    tell_parameters_changed(model_);
  }
  return end;
}

std::vector<TrainingStep::Part> TrainingStep::parts_of(std::span<const Batch> batches,
                                                       std::span<const StepPlace> places,
                                                       const StepInfo& info) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto& [first_image, width, height] = places[i];
    parts.push_back({batches[i], info});
    parts.back().info.first_image = first_image;
    parts.back().info.padded = {width, height};
    if (cluster_.size() > 1) parts.back().info.ranks = &rank_sum_;
  }
  return parts;
}

Losses TrainingStep::losses(const Batch& batch, const StepInfo& info) const {
  const ComputeIn precision(type_, device_);
  return losses_of(model_, batch, info);
}

void TrainingStep::collect_totals(const std::vector<Part>& parts) const {
  const at::NoGradGuard no_graph;
  for (const auto& [batch, info] : parts) {
    auto own = info;
    own.figures = nullptr;
    losses(batch, own);
  }
}

StepReport TrainingStep::descend(std::vector<Part> parts, double factor, StepEnd& end) {
  const bool is_split = parts.size() > 1;
  StepTotals totals(cluster_, model_.title);
  const bool has_totals = is_split || cluster_.size() > 1;
  for (auto& part : parts) part.info.totals = has_totals ? &totals : nullptr;
  if (is_split) {
    collect_totals(parts);
    totals.end_first_pass();
  }
  Sum sum(model_.title);
  for (const auto& part : parts) {
    const auto named = losses(part.batch, part.info);
    if (has_totals && !is_split) totals.end_first_pass();
    sum.add(named);
    if (buckets_ && &part == &parts.back()) buckets_->collect();
    const auto total = added(named);
    (factor != 1 ? total * factor : total).backward();
  }

  std::string gradients;
  if (buckets_) {
    const auto began = Clock::now();
    gradients = buckets_->finish();
    end.sync_s = seconds_since(began);
  }
  const auto* figures = parts[0].info.figures;
  auto mine = sum.read(figures ? *figures : Figures());
  mine.gradients = std::move(gradients);
  if (cluster_.size() == 1) return mine;
  const bool moved = !std::ranges::equal(buffers_, buffers_before_, at::equal);
  if (moved && cluster_.is_chief()) mine.statistics = bytes_of(buffers_);
  auto all = over_all_ranks(cluster_, std::move(mine), model_.title);
  buckets_->hand_out(all.gradients);
  if (cluster_.is_chief()) return all;
  if (!all.statistics.empty())
    set_bytes(buffers_, all.statistics);
  else if (moved)
    at::_foreach_copy_(buffers_, buffers_before_);
  return all;
}

void TrainingStep::take(std::vector<Part> parts, double lr, LossScale& scale, StepEnd& end) {
  const bool scaled = type_ == at::kHalf;
  const double factor = !scaled ? 1 : static_scale_ > 0 ? static_scale_ : scale.factor;
  const auto report = descend(std::move(parts), factor, end);
  const auto say = [&](std::string name, double value, FigureKind kind = FigureKind::mean) {
    end.scalars.push_back({std::move(name), value, kind});
  };
  double whole = 0;
  for (const auto& [name, loss] : report.losses) say(name, loss), whole += loss;
  say("loss", whole);
  if (scaled) say("loss_scale", factor, FigureKind::last);
  for (auto& [name, share] : quotients(report.figures)) say(name, share);
  for (const auto& [name, loss] : report.losses) {
    if (std::isfinite(loss)) continue;
    end.rejected =
        fmt::format("the loss '{}' is {}", name, std::isnan(loss) ? std::abs(loss) : loss);
    optimizer_->clear_gradients();
    return;
  }

  const auto done = optimizer_->step(lr, factor);
  say("gradient_norm", done.gradient_norm);
  const bool searches = scaled && static_scale_ == 0;
  if (done.not_finite.empty()) {
    if (searches) scale.grow();
    return;
  }
  end.rejected = fmt::format("the gradient of '{}' is not finite", done.not_finite);
  if (scaled && !searches)
    end.rejected += fmt::format(" (train.loss_scale = {}: a smaller one may do, or 0)", factor);
  end.overflow = searches && scale.shrink();
}

}  // namespace millrace
