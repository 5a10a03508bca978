#include "millrace/trainer/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "millrace/base/digest.h"
#include "millrace/base/errors.h"
#include "millrace/base/events/event_ring.h"
#include "millrace/base/events/last_events.h"
#include "millrace/base/log.h"
#include "millrace/base/process/exit_codes.h"
#include "millrace/base/process/process_usage.h"
#include "millrace/base/process/stop_signals.h"
#include "millrace/base/text.h"
#include "millrace/dataflow/engine/dataflow.h"
#include "millrace/models/detector/restore.h"
#include "millrace/trainer/activity.h"
#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "millrace/trainer/do_all.h"
#include "millrace/trainer/failed_steps.h"
#include "millrace/trainer/phase.h"
#include "millrace/trainer/validation_pass.h"

namespace millrace {
namespace {

constexpr unsigned kSecondsToEnd = 5;  // after a signal, for flows that are still reading data
constexpr auto kSignalPeriod = std::chrono::milliseconds(50);  // interval of checks for a signal

/// No data arrived. Their flow is leaked, since destroying it would wait for it.
struct NoData : Error {
  using Error::Error;
};

/// Throws NoData after train.rank_timeout, since ranks that all wait for data would wait forever.
void check_data_timeout(const TrainPlan& plan, double waited_s, const DataFlow<Batch>& data) {
  if (plan.cluster.size() == 1 || waited_s < plan.train.rank_timeout.seconds) return;
  auto text = fmt::format("{}: no training data for {} (train.rank_timeout)", plan.cluster.name(),
                          duration_text(waited_s));
  if (const auto work = data.report().in_work; !work.empty())
    text += fmt::format("; stage '{}' processes {}", work[0].stage, work[0].sample);
  throw NoData(text);
}

/// Returns a digest of the cursor; never 0.
std::uint64_t place_of(const Position& at) {
  return digest(at.cursor.pending, digest(at.cursor.next, 1)) | 1;
}

std::string ids(std::span<const Batch> batches) {
  std::string text;
  for (const auto& batch : batches)
    for (const auto& image : batch.images)
      text += (text.empty() ? "" : ", ") + std::to_string(image.image_id);
  return text;
}

std::int64_t images_in(const std::vector<Batch>& batches) {
  std::int64_t images = 0;
  for (const auto& batch : batches) images += static_cast<std::int64_t>(batch.size());
  return images;
}

}  // namespace

Trainer::Trainer(TrainPlan plan, CallbackList callbacks)
    : plan_(std::move(plan)),
      callbacks_(std::move(callbacks)),
      training_step_(plan_.model, plan_.train, plan_.optimizer, plan_.cluster),
      schedule_(plan_.schedule, plan_.optimizer.scaled_lr(plan_.images_per_step),
                plan_.train.epochs),
      state_(plan_.model, plan_.optimizer),
      boundary_(state_, callbacks_, [this] { return checkpoint(); }),
      memory_(plan_.largest_batch, plan_.model.device(), plan_.cluster.local_size()) {
  set_folder(plan_.folder);
  state_.cluster = &plan_.cluster;
  state_.is_chief = plan_.cluster.is_chief();
  state_.cancelled_flows = std::make_shared<CancelledFlows>();
  state_.validation = plan_.validation;
  state_.make_model = plan_.make_model;
  state_.kept_by = [this](const std::string& callback) { return callbacks_.tensors_of(callback); };
}

bool has_all_steps(const Position& at, const TrainOptions& train) {
  return at.progress >= train.epochs || (train.max_steps > 0 && at.step >= train.max_steps);
}

void Trainer::set_folder(const std::filesystem::path& folder) {
  plan_.folder = folder;
  state_.folder = folder;
  boundary_.set_folder(folder / "checkpoints");
}

void Trainer::resume(const Checkpoint& checkpoint) {
  restore(plan_.model, checkpoint.model);
  training_step_.optimizer().load(checkpoint.optimizer);
  state_.hyper.load(checkpoint.hyper);
  state_.latest = checkpoint.latest;
  state_.at = checkpoint.at;
  state_.previous_progress = checkpoint.at.progress;
  callbacks_.load(state_, checkpoint.callbacks, checkpoint.callback_tensors);
  resumed_ = true;
}

TrainEnd Trainer::run() {
  const StopSignals signals;
  DoAll all;
  const auto then = [&](auto&& work) {
    all.then(work);
    state_.failure = all.failure();
  };
  then([&] {
    try {
      train();
    } catch (const NoData&) {
      static_cast<void>(data_.release());  // its destructor would wait for a thread that cannot end
      throw;
    } catch (const Diverged&) {  // the newest checkpoint in memory may contain these steps
      if (state_.requests_.memory) state_.requests_.memory->remove();
      throw;
    }
  });
  then([&] { boundary_.deliver_checkpoint(/*wait=*/true); });
  if (all.has_failed()) {
    write_last_events(state_.failure);
    log_error("training failed after step {}", state_.at.step);
  }
  then([&] { boundary_.call("after_train", [&](Callback& c) { c.after_train(state_); }); });
  then([&] { boundary_.process_requests(); });
  then([&] { boundary_.deliver_checkpoint(/*wait=*/true); });
  const auto signal = signal_of_all(all.has_failed());
  warn_skipped_samples();
  end_data(signal, all.has_failed());
  if (all.has_failed()) log_error_in_file(state_.failure);
  all.done();
  if (!state_.requests_.failure.empty()) throw Error(state_.requests_.failure);
  if (state_.requests_.memory) state_.requests_.memory->remove();
  const bool diverged = signal.empty() && has_diverged(state_.at, plan_.train);
  if (signal.empty() && !diverged && state_.is_chief) callbacks_.warn_unpublished_metrics(state_);
  return {state_.at, state_.stop_reason(), !signal.empty(), diverged};
}

std::string Trainer::signal_of_all(bool failed) {
  const auto& cluster = plan_.cluster;
  if (cluster.size() > 1 && !failed)
    for (const auto& signal : cluster.gather("signals", std::to_string(StopSignals::number())))
      if (signal != "0") StopSignals::note(std::stoi(signal));
  auto signal = StopSignals::received();
  // The signal may have cut the last evaluation short.
  if (!signal.empty()) state_.stop(signal);
  return signal;
}

void Trainer::end_data(const std::string& signal, bool failed) {
  if (!signal.empty())
    StopSignals::give_up_after(
        kSecondsToEnd, failed ? kFailed : kStoppedEarly,
        fmt::format("trainer: {}: ended {} after the signal, while a sample was still being read\n",
                    signal, duration_text(StopSignals::seconds_ago() + kSecondsToEnd)));
  data_.reset();
  state_.cancelled_flows->destroy_all();
  if (!signal.empty())
    log_info("{}: ended {} after the signal", signal, duration_text(StopSignals::seconds_ago()));
}

void Trainer::prepare() {
  data_ = plan_.start_data(state_.at.cursor);
  // If max_steps ends the run early, the schedule is not at fault.
  if (plan_.train.max_steps == 0)
    plan_.schedule.check_warmup(plan_.train.epochs, data_->epoch_size(), plan_.images_per_step);
  training_step_.broadcast_initial_state();
}

void Trainer::train() {
  if (!data_) prepare();
  const Activity::Data watched(*state_.activity, [&] { return data_->report(); });
  state_.total_epochs = plan_.train.epochs;
  const auto samples = data_->epoch_size();
  state_.total_steps = count_steps(plan_.train.epochs, samples, plan_.images_per_step);
  if (plan_.train.max_steps > 0 && plan_.train.max_steps < state_.total_steps) {
    state_.total_steps = plan_.train.max_steps;
    state_.total_epochs = static_cast<double>(plan_.train.max_steps * plan_.images_per_step) /
                          static_cast<double>(samples);
  }
  const auto record_progress = [this](std::int64_t images) {
    const auto& at = state_.at;
    state_.activity->set_progress({at.step, state_.total_steps, at.progress, at.images}, images);
  };
  record_progress(0);
  log_schedule();

  boundary_.call("before_train", [&](Callback& c) { c.before_train(state_); });
  callbacks_.check_metrics();
  if (!resumed_) callbacks_.trigger(state_, /*at_start=*/true);
  boundary_.process_requests();
  stop_if_diverged();
  bool epoch_begins = true, is_first = true;
  while (!has_all_steps(state_.at, plan_.train)) {
    auto next = state_.at;
    std::vector<Batch> batches;
    if (!stop_at_signal()) {
      if (epoch_begins)
        boundary_.call("before_epoch", [&](Callback& c) { c.before_epoch(state_); });
      boundary_.call("before_step", [&](Callback& c) { c.before_step(state_); });
      batches = next_batches(next);
    }
    const auto places = agree(batches, next);
    if (!places) break;
    step(batches, *places);
    if (std::exchange(is_first, false) && !plan_.is_return)
      log_info("first step after {:.1f} s", process_age());

    auto& at = state_.at;
    state_.previous_progress = at.progress;
    at.step += 1;
    at.images = next.images;
    at.progress = next.progress;
    at.cursor = std::move(next.cursor);
    record_progress(images_in(batches));
    epoch_begins = std::floor(at.progress) > std::floor(state_.previous_progress);
    stop_at_signal();
    stop_if_diverged();
    state_.is_last = has_all_steps(at, plan_.train);
    if (state_.is_last && state_.is_chief && !has_diverged(at, plan_.train)) check_has_learned(at);
    boundary_.end_step(epoch_begins);
  }
  state_.activity->begin("end", "compares the ranks' weights");
  training_step_.check_ranks_equal();
}

/// Returns true if training is to end here, because of a signal or for another reason.
bool Trainer::stop_at_signal() {
  if (const auto signal = StopSignals::received(); !signal.empty()) state_.stop(signal);
  return !state_.stop_reason().empty();
}

void Trainer::stop_if_diverged() {
  if (has_diverged(state_.at, plan_.train)) state_.stop(kDivergence);
}

void Trainer::log_schedule() const {
  const auto& train = plan_.train;
  const auto epochs_after = [&](std::int64_t steps) {
    return static_cast<double>(steps * plan_.images_per_step) /
           static_cast<double>(data_->epoch_size());
  };
  const auto epochs = epochs_after(state_.total_steps);
  const bool is_longer = train.max_steps == 0 && epochs > 1.001 * train.epochs;
  log_info(
      "{} of {}: {:.4g} epochs of {}{}", counted(state_.total_steps, "step"),
      counted(plan_.images_per_step, "image"), epochs, counted(data_->epoch_size(), "sample"),
      is_longer ? fmt::format("; train.epochs = {} ends within the last step", train.epochs) : "");
  auto rate = schedule_.text();
  if (state_.total_epochs < train.epochs) {
    const auto last = state_.total_steps - 1;
    rate += fmt::format("; train.max_steps = {} ends it at {:.4g}", train.max_steps,
                        schedule_.rate({.progress = epochs_after(last),
                                        .step = last,
                                        .images = last * plan_.images_per_step}));
  }
  log_info("learning rate {}", rate);
}

/// Warns about skipped samples, since only the first few were logged one by one.
void Trainer::warn_skipped_samples() const {
  if (!data_) return;
  const auto report = data_->report();
  if (report.skipped == 0) return;
  log_warning("{} of the training data could not be used and {} left out; the first: {}",
              counted(report.skipped, "sample"), report.skipped == 1 ? "was" : "were",
              report.skipped_reasons.empty() ? "unknown" : report.skipped_reasons.front());
}

std::vector<Batch> Trainer::next_batches(Position& at) {
  const auto asked = Clock::now();
  const Phase phase(state_, &Spent::data_s, "data", "waits for data");
  std::vector<Batch> batches;
  while (std::ssize(batches) < plan_.optimizer.accumulate) {
    while (!data_->is_ready(kSignalPeriod)) {
      if (stop_at_signal()) return {};
      check_data_timeout(plan_, seconds_since(asked), *data_);
    }
    auto delivery = data_->next();
    if (!delivery) throw Error("the training data ended before the training");
    Event(EventKind::batch, "batch", "images " + ids({&delivery->value, 1}), delivery->number)
        .set_bytes(static_cast<std::int64_t>(delivery->value.bytes()));
    at.images += static_cast<std::int64_t>(delivery->value.size());
    at.progress = delivery->progress;
    at.cursor = std::move(delivery->cursor);
    batches.push_back(std::move(delivery->value));
  }
  return batches;
}

std::optional<std::vector<StepPlace>> Trainer::agree(const std::vector<Batch>& batches,
                                                     Position& next) {
  const auto& cluster = plan_.cluster;
  if (cluster.size() == 1) {
    state_.interrupted_ = batches.empty() && StopSignals::number() != 0;
    if (batches.empty()) return std::nullopt;
    auto alone = agree_on_step(cluster, {.batches = sizes_of(batches, state_.requests_.images)});
    state_.images = std::move(alone.ids);
    return alone.places;
  }
  cluster.set_place(fmt::format("step {}", state_.at.step + 1));
  const StepProposal proposal = {
      .stop = state_.stop_reason(),
      .signal = StopSignals::number(),
      .detector_metrics = state_.requests_.detector_metrics,
      .checkpoint = boundary_.wants_checkpoint(),
      .data_place = batches.empty() ? 0 : place_of(next),
      .waited_s = state_.spent.data_s - waited_for_data_s_,
      .busy_s = seconds_since(agreed_) - (waited_for_ranks_s() - waited_s_),
      .hyper = state_.hyper.values(),
      .batches = sizes_of(batches, state_.requests_.images)};
  auto agreed = [&] {
    const Phase phase(state_, &Spent::exchange_s, "exchange",
                      "agrees with the other ranks on the next step");
    return agree_on_step(cluster, proposal);
  }();
  agreed_ = Clock::now();
  waited_s_ = waited_for_ranks_s();
  waited_for_data_s_ = state_.spent.data_s;
  next.images = state_.at.images + agreed.images;
  state_.hyper.set_values(agreed.hyper);
  state_.requests_.detector_metrics = agreed.detector_metrics;
  state_.images = std::move(agreed.ids);
  if (agreed.checkpoint) boundary_.save_for_others();
  if (const auto slow = stragglers_.add(agreed, cluster)) log_info("{}", *slow);
  if (agreed.signal != 0 && StopSignals::number() == 0) StopSignals::note(agreed.signal);
  state_.requests_.stop_reason = agreed.stop;
  if (agreed.stop.empty()) return agreed.places;
  state_.interrupted_ = agreed.signal != 0;
  cluster.set_ending();
  return std::nullopt;
}

double Trainer::waited_for_ranks_s() const {
  return plan_.cluster.waited_s() + state_.spent.sync_s;
}

void Trainer::step(const std::vector<Batch>& batches, std::span<const StepPlace> places) {
  auto& at = state_.at;
  training_step_.optimizer().set_options(state_.hyper.applied_to(plan_.optimizer));
  state_.lr = schedule_.rate({at.progress, at.step, at.images}) * state_.hyper.at("lr_factor") *
              at.rate_factor;
  Metrics metrics;
  const StepInfo info{
      .seed = static_cast<std::uint64_t>(plan_.train.seed),
      .step = at.step,
      .progress = at.progress,
      .metrics = std::exchange(state_.requests_.detector_metrics, false) ? &metrics : nullptr};
  const auto scale = at.loss_scale;
  memory_.before_step();
  auto end = [&] {
    const Phase phase(state_, &Spent::step_s, "step",
                      fmt::format("takes step {} with images {}", at.step + 1, ids(batches)));
    try {
      return training_step_(batches, places, info, state_.lr, at.loss_scale);
    } catch (const std::exception& problem) {
      if (!is_out_of_memory(problem)) throw;
      throw Error(fmt::format("step {}: {}", at.step + 1, out_of_memory_text(batches)));
    }
  }();
  memory_.after_step(at.step + 1, batches, places);
  auto &wall = state_.spent, &cpu = state_.spent_cpu;
  wall.forward_s += end.forward_s;
  cpu.forward_s += end.forward_cpu_s;
  wall.backward_s += end.backward_s;
  cpu.backward_s += end.backward_cpu_s;
  wall.sync_s += end.sync_s;
  state_.scalars = std::move(end.scalars);
  if (end.rejected.empty()) {
    if (at.bad_in_a_row > 1 && state_.is_chief)
      log_info("skipped {} in a row, up to step {}", counted(at.bad_in_a_row, "step"), at.step);
    at.bad_in_a_row = 0;
    if (at.step + 1 >= at.failing_step) at.failing_step = 0;
  } else if (end.overflow) {
    at.overflow_steps += 1;
    log_info("step {}: {}; loss scale is now {}", at.step + 1, end.rejected, at.loss_scale.factor);
  } else if (!state_.is_chief) {
    at.bad_steps += 1;  // rank 0 also rejects it, records it and warns
    at.bad_in_a_row += 1;
  } else {
    reject_step(at,
                {.info = info,
                 .with_metrics = info.metrics != nullptr,
                 .lr = state_.lr,
                 .loss_scale = scale,
                 .hyper = state_.hyper.changed(),
                 .scalars = state_.scalars,
                 .rejected = end.rejected,
                 .classes = plan_.classes,
                 .config = plan_.config,
                 .model = named_values(plan_.model),
                 .batches = batches},
                plan_.folder, plan_.train);
  }
  const auto add_scalar = [&](const std::string& name, double value) {
    state_.scalars.push_back({name, value, MetricKind::last});
  };
  add_scalar("lr", state_.lr);
  for (const auto& [name, value] : state_.hyper.changed()) add_scalar(name, value);
  if (at.bad_steps > 0) add_scalar("bad_steps", static_cast<double>(at.bad_steps));
  if (at.returns > 0) add_scalar("returns", static_cast<double>(at.returns));
  if (at.overflow_steps > 0) add_scalar("overflow_steps", static_cast<double>(at.overflow_steps));
}

Checkpoint Trainer::checkpoint() const {
  return {.seed = static_cast<std::uint64_t>(plan_.train.seed),
          .epoch_size = data_ ? data_->epoch_size() : 0,
          .classes = plan_.classes,
          .model = named_values(plan_.model),
          .optimizer = training_step_.optimizer().state(),
          .config = plan_.config,
          .metadata = plan_.metadata};
}

}  // namespace millrace
