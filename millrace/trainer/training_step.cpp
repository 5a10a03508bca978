#include "millrace/trainer/training_step.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/detector/make_detector.h"
#include "millrace/detector/precision.h"
#include "millrace/detector/restore.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "millrace/trainer/device_numbers.h"

namespace millrace {

/// What a step's batches say of it, brought to the host in one transfer: losses, norms, figures.
class StepSums {
 public:
  explicit StepSums(const std::string& title) : title_(title) {}

  void add(const Losses& losses) {
    if (names_.empty())
      for (const auto& [name, loss] : losses) names_.push_back(name);
    if (!std::ranges::equal(losses, names_, {}, &Losses::value_type::first))
      throw Error(title_ + " gave other losses for one batch of the step than for another");
    for (const auto& [name, loss] : losses) losses_.push_back(loss.detach().reshape({}));
  }

  /// Queues the transfer. `measured`: of the optimizer. `moved`: one number, or undefined.
  void queue(const at::Tensor& measured, const Figures& figures, const at::Tensor& moved) {
    decisive_ = at::stack(losses_);
    if (measured.numel() > 0) decisive_ = at::cat({decisive_, measured});
    std::vector<at::Tensor> more;
    for (const auto& number : figures.numbers())
      if (is_there(number)) more.push_back(number);
    if (moved.defined()) more.push_back(moved);
    numbers_.emplace(more.empty() ? decisive_ : at::cat({decisive_, at::stack(more)}));
  }

  /// Queues the decision: fp32, 1 if a loss or a norm is not finite, else 0.
  at::Tensor bad() const { return (decisive_ * 0).sum().ne(0).to(at::kFloat); }

  /// Waits for the device. Also whether `moved` was not 0.
  std::pair<StepReport, bool> read(const Figures& figures) {
    StepReport report;
    const auto all = numbers_->get();
    for (std::size_t i = 0; i < losses_.size(); ++i) {
      if (i < names_.size()) report.losses.emplace_back(names_[i], 0);
      report.losses[i % names_.size()].second += all[i];
    }
    auto next = all.begin() + static_cast<std::ptrdiff_t>(decisive_.numel());
    report.measured.assign(all.begin() + static_cast<std::ptrdiff_t>(losses_.size()), next);
    std::vector<double> values;
    for (const auto& number : figures.numbers())
      values.push_back(is_there(number) ? *next++ : number.item<double>());
    report.figures = figures.sums(values.data());
    return {std::move(report), next != all.end() && *next != 0};
  }

 private:
  /// Others are on the host already.
  bool is_there(const at::Tensor& number) const { return number.device() == losses_[0].device(); }

  const std::string& title_;  // of the detector
  std::vector<std::string> names_;
  std::vector<at::Tensor> losses_;  // by batch, then as the names
  at::Tensor decisive_;             // losses, then norms
  std::optional<DeviceNumbers> numbers_;
};

namespace {

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
      device_(device_of(model).type()),
      static_scale_(train.loss_scale),
      statistics_(model.parameters()),
      rank_sum_(cluster, device_) {
  if (device_ == at::kCPU && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 train.precision);
  if (cluster.size() == 1) return;
  sync_ = make_gradient_sync(device_, cluster);
  buckets_.emplace(model.parameters(), *sync_, precision_type(train.gradient_type));
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
  statistics_.keep();
  StepEnd end;
  take(parts_of(batches, places, info), lr, scale, end);
  if (!end.rejected.empty() && !statistics_.empty()) {
    statistics_.restore();
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

void TrainingStep::descend(const std::vector<Part>& parts, double factor, StepSums& sums) {
  StepTotals totals(cluster_, model_.title, parts.size());
  const bool has_totals = parts.size() > 1 || cluster_.size() > 1;
  const auto losses_of_part = [&](std::size_t i, Figures* figures) {
    auto info = parts[i].info;
    info.figures = figures;
    info.totals = has_totals ? &totals : nullptr;
    totals.begin(i);
    return losses(parts[i].batch, info);
  };
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const at::NoGradGuard no_graph;
    losses_of_part(i, nullptr);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto named = losses_of_part(i, parts[i].info.figures);
    if (has_totals && i == 0) totals.complete();
    sums.add(named);
    if (buckets_ && i + 1 == parts.size()) buckets_->collect();
    const auto total = added(named);
    (factor != 1 ? total * factor : total).backward();
  }
}

StepReport TrainingStep::shared(StepReport mine, bool moved) {
  if (moved && cluster_.is_chief()) mine.statistics = statistics_.bytes();
  auto all = over_all_ranks(cluster_, std::move(mine), model_.title);
  buckets_->hand_out(all.gradients);
  if (cluster_.is_chief()) return all;
  if (!all.statistics.empty())
    statistics_.set(all.statistics);
  else if (moved)
    statistics_.restore();
  return all;
}

void TrainingStep::take(const std::vector<Part>& parts, double lr, LossScale& scale, StepEnd& end) {
  const bool scaled = type_ == at::kHalf, is_alone = cluster_.size() == 1;
  const double factor = !scaled ? 1 : static_scale_ > 0 ? static_scale_ : scale.factor;
  static const Figures none;
  const auto& figures = parts[0].info.figures ? *parts[0].info.figures : none;
  StepSums sums(model_.title);
  descend(parts, factor, sums);

  std::string gradients;
  std::optional<DeviceSpan> sync;
  if (buckets_) {
    sync.emplace(device_);
    gradients = buckets_->finish();
    sync->end();
    buckets_->hand_out(std::string(gradients.size(), '1'));  // to be measured
  }
  const auto measured = optimizer_->measure(factor);
  const bool may_move = !is_alone && !statistics_.empty();
  sums.queue(measured, figures, may_move ? statistics_.moved() : at::Tensor());
  const bool device_decides = device_ != at::kCPU && is_alone && !optimizer_->needs_host();
  if (device_decides) optimizer_->apply_unless(sums.bad(), lr, measured);
  auto [report, moved] = sums.read(figures);
  report.gradients = std::move(gradients);
  if (sync) end.sync_s = sync->seconds();
  if (!is_alone) report = shared(std::move(report), moved);

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

  const auto done = device_decides ? optimizer_->outcome(report.measured)
                                   : optimizer_->apply(lr, report.measured);
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
