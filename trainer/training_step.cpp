#include "millrace/trainer/training_step.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/detector/device_pixels.h"
#include "millrace/models/detector/knows_totals.h"
#include "millrace/models/detector/make_detector.h"
#include "millrace/models/detector/precision.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/cluster/micro_batches.h"
#include "millrace/trainer/cluster/processors.h"
#include "millrace/trainer/cluster/share_values.h"
#include "millrace/trainer/cluster/step_totals.h"
#include "millrace/trainer/device_numbers.h"
#include "millrace/trainer/step_passes.h"

namespace millrace {

/// What a step's micro-batches say of it, brought to the host in one transfer: losses, norms,
/// figures.
class StepSums {
 public:
  StepSums(const std::string& title, std::size_t micro_batches, bool with_figures)
      : title_(title), losses_(micro_batches), figures_(with_figures ? micro_batches : 0) {}

  std::size_t micro_batches() const { return losses_.size(); }

  /// Of the micro-batch, as are its figures; each on its own thread.
  void add(std::size_t number, const Losses& losses) {
    for (const auto& [name, loss] : losses)
      losses_[number].emplace_back(name, loss.detach().reshape({}));
    counts_.store(losses.size());
  }
  /// nullptr: nobody asks.
  Figures* figures(std::size_t number) { return figures_.empty() ? nullptr : &figures_[number]; }

  /// Queues the transfer. `measured`: of the optimizer. `moved`: one number, or undefined.
  void queue(const at::Tensor& measured, const at::Tensor& moved) {
    std::vector<at::Tensor> all;
    for (const auto& own : losses_)
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (own.size() % count() != 0 || own[i].first != losses_[0][i % count()].first)
          throw Error(title_ + " gave other losses for one batch of the step than for another");
        all.push_back(own[i].second);
      }
    decisive_ = at::stack(all);
    if (measured.numel() > 0) decisive_ = at::cat({decisive_, measured});
    std::vector<at::Tensor> more;
    for (const auto& own : figures_)
      for (const auto& number : own.numbers())
        if (is_there(number)) more.push_back(number);
    if (moved.defined()) more.push_back(moved);
    numbers_.emplace(more.empty() ? decisive_ : at::cat({decisive_, at::stack(more)}));
  }

  /// Queues the decision: fp32, 1 if a loss or a norm is not finite, else 0.
  at::Tensor bad() const { return (decisive_ * 0).sum().ne(0).to(at::kFloat); }

  /// Waits for the device. By micro-batch; what was measured is the first one's. Also whether
  /// `moved` was not 0.
  std::pair<std::vector<StepReport>, bool> read() {
    std::vector<StepReport> reports(losses_.size());
    const auto all = numbers_->get();
    auto next = all.begin();
    for (std::size_t number = 0; number < reports.size(); ++number)
      for (std::size_t i = 0; i < losses_[number].size(); ++i) {
        auto& own = reports[number].losses;
        if (i < count()) own.emplace_back(losses_[number][i].first, 0);
        own[i % count()].second += *next++;
      }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(decisive_.numel());
    reports[0].measured.assign(next, end);
    next = end;
    for (std::size_t number = 0; number < figures_.size(); ++number) {
      std::vector<double> values;
      for (const auto& value : figures_[number].numbers())
        values.push_back(is_there(value) ? *next++ : value.item<double>());
      reports[number].figures = figures_[number].sums(values.data());
    }
    return {std::move(reports), next != all.end() && *next != 0};
  }

 private:
  /// Losses of a batch.
  std::size_t count() const { return counts_.load(); }
  /// Others are on the host already.
  bool is_there(const at::Tensor& number) const {
    return number.device() == losses_[0][0].second.device();
  }

  const std::string& title_;    // of the detector
  std::vector<Losses> losses_;  // by micro-batch: those of its batches, one after the other
  std::vector<Figures> figures_;
  std::atomic<std::size_t> counts_ = 0;
  at::Tensor decisive_;  // losses, then norms
  std::optional<DeviceNumbers> numbers_;
};

namespace {

/// Images `first` .. `first + count` of the batch, whose pixels it shares.
Batch part_of(const Batch& batch, std::size_t first, std::size_t count) {
  Batch part{.height = batch.height, .width = batch.width, .divisor = batch.divisor};
  const auto some = [&](const auto& all, auto& own) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    own.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
  };
  some(batch.images, part.images);
  some(batch.objects, part.objects);
  const auto bytes_before = batch.bytes() / batch.size() * first;
  part.pixels = {batch.pixels, batch.pixels.get() + bytes_before};
  if (batch.on_device) part.on_device = pixels_of_images(*batch.on_device, first, count);
  return part;
}

at::Tensor added(const Losses& losses) {
  auto total = losses[0].second.reshape({});
  for (std::size_t i = 1; i < losses.size(); ++i) total = total + losses[i].second.reshape({});
  return total;
}

}  // namespace

/// A part of a batch, or all of it.
struct TrainingStep::MicroBatch {
  std::shared_ptr<const Batch> batch;
  StepInfo info;
};

/// What is computed in one pass: micro-batches of one of the step's batches on this rank, side by
/// side.
struct TrainingStep::Part {
  std::vector<MicroBatch> micro_batches;
  std::size_t first = 0;  // number of the first among those of its batch
  bool collects = false;  // nothing comes after it for these numbers
};

TrainingStep::TrainingStep(Detector& model, const TrainOptions& train,
                           const OptimizerOptions& optimizer, const Cluster& cluster)
    : model_(model),
      cluster_(cluster),
      optimizer_(make_optimizer(model.parameters(), optimizer)),
      type_(precision_type(train.precision)),
      device_(model.device()),
      static_scale_(train.loss_scale),
      micro_batch_(static_cast<std::size_t>(train.micro_batch)),
      passes_(static_cast<std::size_t>(std::max<std::int64_t>(1, train.passes))),
      statistics_(model.parameters()),
      order_(micro_batch_ > 0 ? SumOrder::tree : SumOrder::fastest),
      rank_sum_(cluster, device_.type(), order_) {
  if (device_.is_cpu() && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 train.precision);
  if (cluster.size() == 1 && micro_batch_ == 0) return;
  sync_ = make_gradient_sync(device_.type(), cluster, order_);
  buckets_.emplace(model.parameters(), *sync_, precision_type(train.gradient_type));
}

void TrainingStep::start_alike() {
  take_chiefs_values(cluster_, named_values(model_), "the model");
  take_chiefs_values(cluster_, optimizer_->state(), "the optimizer");
  model_.parameters_changed();
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
    model_.parameters_changed();
  }
  return end;
}

std::vector<TrainingStep::Part> TrainingStep::parts_of(std::span<const Batch> batches,
                                                       std::span<const StepPlace> places,
                                                       const StepInfo& info) const {
  std::vector<Part> parts;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto before = parts.size();
    add_parts(batches[i], places[i], info, parts);
    if (i + 1 < batches.size()) continue;
    for (auto part = micro_batch_ > 0 ? before : parts.size() - 1; part < parts.size(); ++part)
      parts[part].collects = true;
  }
  return parts;
}

/// The parts of one batch: as many passes on every rank. A batch that has lost images may have
/// fewer micro-batches than those of other ranks, and a smaller last one.
void TrainingStep::add_parts(const Batch& batch, const StepPlace& place, StepInfo info,
                             std::vector<Part>& parts) const {
  const auto unit = std::max<std::size_t>(1, micro_batch_), images = batch.size();
  const auto units_of = [unit](std::size_t count) { return (count + unit - 1) / unit; };
  const auto units = units_of(images);
  const auto fewest = units_of(static_cast<std::size_t>(place.fewest_images));
  const auto passes = std::clamp<std::size_t>(passes_, 1, std::max<std::size_t>(1, fewest));
  info.padded = {place.width, place.height};
  if (cluster_.size() > 1) info.ranks = &rank_sum_;
  for (std::size_t pass = 0; pass < passes; ++pass) {
    const auto begin = pass * units / passes, end = (pass + 1) * units / passes;
    auto& part = parts.emplace_back();
    part.first = micro_batch_ > 0 ? begin : 0;
    const auto size = micro_batch_ > 0 ? micro_batch_ : end - begin;
    const auto last = std::min(end * unit, images);
    for (auto first = begin * unit; first < last; first += size) {
      auto own = info;
      own.first_image = place.first_image + static_cast<std::int64_t>(first);
      const auto count = std::min(size, last - first);
      part.micro_batches.push_back(
          {count == images ? std::shared_ptr<const Batch>(std::shared_ptr<void>(), &batch)
                           : std::make_shared<const Batch>(part_of(batch, first, count)),
           own});
    }
  }
}

/// How many micro-batches a rank computes at the same time: as many as it has processors for; on a
/// device one, since it is the device that computes.
std::size_t TrainingStep::at_once() const {
  if (!device_.is_cpu()) return 1;
  return std::max<std::size_t>(
      1, allowed_processor_count() / static_cast<std::size_t>(at::get_num_threads()));
}

void TrainingStep::descend(const std::vector<Part>& parts, double factor, StepSums& sums,
                           StepPasses& passes) {
  const bool is_cut = micro_batch_ > 0, has_totals = is_cut || parts.size() > 1 || buckets_;
  StepTotals totals(cluster_, model_.title(), parts.size());
  bool moves_sums = false;
  /// Calls work(number, compute) for each micro-batch of the part, side by side; compute(what)
  /// calls what(detector, batch, info) for it.
  const auto each = [&](std::size_t i, bool with_figures, const auto& work) {
    const auto& [micro_batches, first, collects] = parts[i];
    MicroBatches side_by_side(micro_batches.size(), at_once(), device_);
    MicroBatchTotals own_totals(side_by_side, totals);
    MicroBatchSum statistics(side_by_side, rank_sum_);
    totals.begin(i);
    side_by_side.run([&](std::size_t own) {
      auto info = micro_batches[own].info;
      info.figures = with_figures ? sums.figures(first + own) : nullptr;
      info.totals = has_totals ? &own_totals : nullptr;
      if (is_cut) info.ranks = &statistics;
      work(side_by_side, first + own, [&](const auto& what) {
        const ComputeIn precision(type_, device_.type(), /*keeps_casts=*/!is_cut);
        return what(model_, *micro_batches[own].batch, info);
      });
    });
    moves_sums |= statistics.has_moved_statistics();
  };
  if (buckets_) buckets_->begin(sums.micro_batches());
  for (std::size_t i = 1; i < parts.size(); ++i)
    each(i, /*with_figures=*/false, [&](MicroBatches&, std::size_t number, const auto& compute) {
      const at::NoGradGuard no_graph;
      StepPasses::Pass forward(passes, number, StepPasses::forward);
      compute(ask_totals_of);
      forward.end();
    });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (buckets_) buckets_->begin_pass(parts[i].first);
    if (buckets_ && parts[i].collects) buckets_->collect();
    each(i, /*with_figures=*/true,
         [&](MicroBatches& side_by_side, std::size_t number, const auto& compute) {
           StepPasses::Pass forward(passes, number, StepPasses::forward);
           const auto named =
               compute([](Detector& model, const Batch& batch, const StepInfo& info) {
                 return model.losses(batch, info);
               });
           if (has_totals && i == 0)
             side_by_side.join("end of the losses", 0, [&](const std::vector<int>&) {
               totals.complete();
               return 0;
             });
           sums.add(number, named);
           forward.end();
           StepPasses::Pass backward(passes, number, StepPasses::backward);
           const auto total = added(named);
           (factor != 1 ? total * factor : total).backward();
           backward.end();
         });
  }
  passes.end();
  takes_sums_ = !is_cut || moves_sums;
}

StepReport TrainingStep::shared(std::vector<StepReport> mine, bool moved) {
  mine[0].statistics_alone = moved && micro_batch_ > 0 && !takes_sums_;
  if (moved && cluster_.is_chief()) mine[0].statistics = statistics_.bytes();
  auto all = over_all_ranks(cluster_, std::move(mine), model_.title());
  if (all.statistics_alone)  // on all ranks, also where theirs came to the same value again
    throw Error(model_.title() +
                " keeps running statistics of each micro-batch alone, which would depend on who "
                "computes it: set train.micro_batch = 0");
  if (buckets_) buckets_->hand_out(all.gradients);
  if (cluster_.is_chief()) return all;
  if (!all.statistics.empty())
    statistics_.set(all.statistics);
  else if (moved)
    statistics_.restore();
  return all;
}

void TrainingStep::take(const std::vector<Part>& parts, double lr, LossScale& scale, StepEnd& end) {
  const bool scaled = type_ == at::kHalf;
  const double factor = !scaled ? 1 : static_scale_ > 0 ? static_scale_ : scale.factor;
  std::size_t micro_batches = 1;
  for (const auto& part : parts)
    micro_batches = std::max(micro_batches, part.first + part.micro_batches.size());
  StepSums sums(model_.title(), micro_batches, parts[0].micro_batches[0].info.figures != nullptr);
  StepPasses passes(micro_batches, device_.type());
  descend(parts, factor, sums, passes);

  std::string gradients;
  std::optional<DeviceSpan> sync;
  if (buckets_) {
    sync.emplace(device_.type());
    gradients = buckets_->finish();
    sync->end();
    buckets_->hand_out(std::string(gradients.size(), '1'));  // to be measured
  }
  const auto measured = optimizer_->measure(factor);
  const bool may_move = buckets_ && !statistics_.empty();
  sums.queue(measured, may_move ? statistics_.moved() : at::Tensor());
  const bool device_decides = !device_.is_cpu() && !buckets_ && !optimizer_->needs_host();
  if (device_decides) optimizer_->apply_unless(sums.bad(), lr, measured);
  auto [reports, moved] = sums.read();
  reports[0].gradients = std::move(gradients);
  if (sync) end.sync_s = sync->seconds();
  passes.tell(end);
  const auto report = shared(std::move(reports), moved);

  const auto say = [&](std::string name, double value, FigureKind kind = FigureKind::mean) {
    end.scalars.push_back({std::move(name), value, kind});
  };
  double whole = 0;
  for (const auto& [name, loss] : report.losses) say(name, loss), whole += loss;
  say("loss", whole);
  if (scaled) say("loss_scale", factor, FigureKind::last);
  for (const auto& [name, share] : quotients(report.figures)) say(name, share);
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
