#include "millrace/trainer/training_step.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/models/detector/loss_sums.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/cluster/micro_batches.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/step_passes.h"

namespace millrace {
namespace {

at::Tensor sum_of(const Losses& losses) {
  auto sum = losses[0].second.reshape({});
  for (std::size_t i = 1; i < losses.size(); ++i) sum = sum + losses[i].second.reshape({});
  return sum;
}

}  // namespace

TrainingStep::TrainingStep(Detector& model, const TrainOptions& train,
                           const OptimizerOptions& optimizer, const Cluster& cluster)
    : model_(model),
      cluster_(cluster),
      optimizer_(make_optimizer(model.parameters(), optimizer)),
      type_(precision_type(train.precision)),
      device_(model.device()),
      static_scale_(train.loss_scale),
      cut_{.images = static_cast<std::size_t>(train.micro_batch),
           .passes = static_cast<std::size_t>(std::max<std::int64_t>(1, train.passes))},
      statistics_(model.parameters()),
      order_(cut_.images > 0 ? SumOrder::tree : SumOrder::fastest),
      rank_sum_(cluster, device_.type(), order_) {
  if (device_.is_cpu() && !cpu_multiplies(type_))
    log_warning("this CPU has no instructions for {}; it will be slower than fp32",
                value_name(train.precision));
  if (cluster.size() == 1 && cut_.images == 0) return;
  sync_ = make_gradient_sync(device_.type(), cluster, order_);
  buckets_.emplace(model.parameters(), *sync_, precision_type(train.gradient_type));
}

void TrainingStep::broadcast_initial_state() {
  broadcast_values(cluster_, named_values(model_), "the model");
  broadcast_values(cluster_, optimizer_->state(), "the optimizer");
  model_.parameters_changed();
}

void TrainingStep::check_ranks_equal() const {
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
  auto end = take(cut_into_micro_batches(batches, places, info, cut_), lr, scale);
  if (!end.rejected.empty() && !statistics_.empty()) {
    statistics_.restore();
    model_.parameters_changed();
  }
  return end;
}

std::size_t TrainingStep::at_once() const {
  if (!device_.is_cpu()) return 1;  // the device does the computing
  return std::max<std::size_t>(
      1, allowed_processor_count() / static_cast<std::size_t>(at::get_num_threads()));
}

void TrainingStep::run(
    const MicroBatchGroup& group,
    const std::function<void(MicroBatches&, std::size_t, const StepInfo&)>& compute) {
  MicroBatches side_by_side(group.members.size(), at_once(), device_);
  MicroBatchSum statistics(side_by_side, rank_sum_);
  side_by_side.run([&](std::size_t member) {
    auto info = group.members[member].info;
    info.metrics = nullptr;
    if (buckets_) info.ranks = &statistics;
    compute(side_by_side, member, info);
  });
  moves_sums_ |= statistics.has_moved_statistics();
}

std::vector<LossDivisors> TrainingStep::count(const MicroBatchGroup& group, StepPasses& passes) {
  std::vector<LossDivisors> counts(group.members.size());
  run(group, [&](MicroBatches&, std::size_t member, const StepInfo& info) {
    const at::NoGradGuard no_graph;
    StepPasses::Pass forward(passes, group.first + member, StepPasses::forward);
    const ComputeIn precision(type_, device_.type(), /*keeps_casts=*/cut_.images == 0);
    counts[member] = model_.counts(*group.members[member].batch, info);
    forward.end();
  });
  return counts;
}

void TrainingStep::add_gradients(const Groups& groups, double factor, StepNumbers& numbers,
                                 StepPasses& passes) {
  StepTotals totals(cluster_, model_.title());
  moves_sums_ = false;
  if (buckets_) buckets_->begin(count_numbers(groups));
  for (std::size_t i = 1; i < groups.size(); ++i) totals.add(count(groups[i], passes));
  for (const auto& group : groups) {
    if (buckets_) buckets_->begin_group(group.first, group.is_last);
    run(group, [&](MicroBatches& side_by_side, std::size_t member, StepInfo info) {
      const auto number = group.first + member;
      info.metrics = numbers.metrics(number);
      StepPasses::Pass forward(passes, number, StepPasses::forward);
      const auto sums = [&] {
        const ComputeIn precision(type_, device_.type(), /*keeps_casts=*/cut_.images == 0);
        return model_.loss_sums(*group.members[member].batch, info);
      }();
      if (&group == &groups.front())
        side_by_side.join("counts of the losses", counts_of(sums),
                          [&](const std::vector<LossDivisors>& all) {
                            totals.complete(all);
                            return LossDivisors();
                          });
      const auto losses = totals.means(sums);
      numbers.add(number, losses);
      forward.end();
      StepPasses::Pass backward(passes, number, StepPasses::backward);
      const auto loss = sum_of(losses);
      (factor != 1 ? loss * factor : loss).backward();
      backward.end();
    });
  }
  passes.end();
}

std::string TrainingStep::sum_gradients(StepPasses& passes) {
  if (!buckets_) return {};
  StepPasses::Pass sync(passes, 0, StepPasses::sync);
  auto gradients = buckets_->finish();
  sync.end();
  buckets_->set_gradients(std::string(gradients.size(), '1'));
  return gradients;
}

StepReport TrainingStep::combine_reports(std::vector<StepReport> mine, bool moved) {
  mine[0].statistics_alone = moved && cut_.images > 0 && !moves_sums_;
  if (moved && cluster_.is_chief()) mine[0].statistics = statistics_.bytes();
  auto all = over_all_ranks(cluster_, std::move(mine), model_.title());
  if (all.statistics_alone)  // on all ranks, even if their values happen to be unchanged
    throw Error(model_.title() +
                " keeps running statistics of single micro-batches, which would depend on the rank "
                "that computes them; set train.micro_batch = 0");
  if (buckets_) buckets_->set_gradients(all.gradients);
  if (cluster_.is_chief()) return all;
  if (!all.statistics.empty())
    statistics_.set(all.statistics);
  else if (moved)
    statistics_.restore();
  return all;
}

StepEnd TrainingStep::take(const Groups& groups, double lr, LossScale& scale) {
  const bool scaled = type_ == at::kHalf;
  const double factor = !scaled ? 1 : static_scale_ > 0 ? static_scale_ : scale.factor;
  const auto micro_batches = count_numbers(groups);
  StepNumbers numbers(model_.title(), micro_batches, groups[0].members[0].info.metrics != nullptr);
  StepPasses passes(micro_batches, device_.type());

  // Micro-batches, sums over ranks, clipping and optimizer are all queued on a device.
  add_gradients(groups, factor, numbers, passes);
  auto gradients = sum_gradients(passes);
  const auto measured = optimizer_->measure(factor);
  const bool may_move = buckets_ && !statistics_.empty();
  numbers.queue(measured, may_move ? statistics_.moved() : at::Tensor());
  const bool device_decides = !device_.is_cpu() && !buckets_ && !optimizer_->needs_host();
  if (device_decides) optimizer_->apply_unless(numbers.bad(), lr, measured);
  auto [reports, moved] = numbers.read();
  reports[0].gradients = std::move(gradients);
  StepEnd end;
  passes.fill_times(end);
  const auto report = combine_reports(std::move(reports), moved);

  const auto add = [&](std::string name, double value, MetricKind kind = MetricKind::mean) {
    end.scalars.push_back({std::move(name), value, kind});
  };
  double whole = 0;
  for (const auto& [name, loss] : report.losses) add(name, loss), whole += loss;
  add("loss", whole);
  if (scaled) add("loss_scale", factor, MetricKind::last);
  for (const auto& [name, share] : metric_values(report.metrics)) add(name, share);
  for (const auto& [name, loss] : report.losses) {
    if (std::isfinite(loss)) continue;
    end.rejected =
        fmt::format("the loss '{}' is {}", name, std::isnan(loss) ? std::abs(loss) : loss);
    optimizer_->clear_gradients();
    return end;
  }

  const auto done = device_decides ? optimizer_->outcome(report.measured)
                                   : optimizer_->apply(lr, report.measured);
  add("gradient_norm", done.gradient_norm);
  const bool searches = scaled && static_scale_ == 0;
  if (done.not_finite.empty()) {
    if (searches) scale.grow();
    return end;
  }
  end.rejected = fmt::format("the gradient of '{}' is not finite", done.not_finite);
  if (scaled && !searches)
    end.rejected += fmt::format(" (train.loss_scale = {}; try a smaller one, or 0)", factor);
  end.overflow = searches && scale.shrink();
  return end;
}

}  // namespace millrace
