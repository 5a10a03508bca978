#include "trainer/trainer.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "base/errors.h"
#include "base/log.h"
#include "trainer/restore.h"
#include "trainer/stop_signals.h"

namespace millrace {
namespace {

constexpr std::int64_t kMaxBadInARow = 10;  // steps that are not finite, before training gives up

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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(TrainPlan plan, CallbackList callbacks)
    : plan_(std::move(plan)),
      callbacks_(std::move(callbacks)),
      optimizer_(plan_.model.parameters(), plan_.optimizer),
      schedule_(plan_.schedule, plan_.optimizer.scaled_lr(plan_.images_per_step),
                plan_.train.epochs),
      type_(precision_type(plan_.train.precision)),
      device_(device_of(plan_.model)),
      state_(plan_.model) {
  if (device_ == at::kCPU && !cpu_multiplies(type_))
    spdlog::warn("this processor has no instructions for {}: it will be slower than fp32",
                 plan_.train.precision);
  state_.folder = plan_.folder;
  state_.validation = plan_.validation;
  state_.make_model = plan_.make_model;
}

void Trainer::resume(const Checkpoint& checkpoint) {
  restore(plan_.model, checkpoint.model);
  optimizer_.load(checkpoint.optimizer);
  callbacks_.load_states(checkpoint.callbacks);
  state_.at = checkpoint.at;
  state_.previous_progress = checkpoint.at.progress;
}

template <class Hook>
void Trainer::call(const char* name, Hook hook) {
  callbacks_.each(name, state_.is_chief, [&](Callback& callback) { hook(callback); });
}

TrainEnd Trainer::run() {
  const StopSignals signals;
  std::exception_ptr failure;
  const auto guarded = [&](auto&& work) {
    try {
      work();
    } catch (const std::exception& problem) {
      if (!failure) state_.failure = problem.what();
      if (!failure) failure = std::current_exception();
    }
  };
  guarded([&] { train(); });
  if (failure) spdlog::error("training failed after step {}: {}", state_.at.step, state_.failure);
  guarded([&] { call("after_train", [&](Callback& c) { c.after_train(state_); }); });
  guarded([&] { settle(); });
  if (failure) std::rethrow_exception(failure);
  return {state_.at, state_.stop_reason(), !StopSignals::received().empty()};
}

void Trainer::train() {
  const auto data = plan_.start_data(state_.at.cursor);
  state_.total_epochs = plan_.train.epochs;
  const auto steps_of_epoch =
      static_cast<double>(data->epoch_size()) / static_cast<double>(plan_.images_per_step);
  state_.total_steps = static_cast<std::int64_t>(std::ceil(plan_.train.epochs * steps_of_epoch));
  if (plan_.train.max_steps > 0 && plan_.train.max_steps < state_.total_steps) {
    state_.total_steps = plan_.train.max_steps;
    state_.total_epochs = static_cast<double>(plan_.train.max_steps) / steps_of_epoch;
  }

  call("before_train", [&](Callback& c) { c.before_train(state_); });
  settle();
  bool epoch_begins = true;
  while (!finished() && state_.stop_reason().empty()) {
    if (epoch_begins) call("before_epoch", [&](Callback& c) { c.before_epoch(state_); });
    call("before_step", [&](Callback& c) { c.before_step(state_); });

    const auto asked = std::chrono::steady_clock::now();
    const auto delivery = data->next();
    state_.data_wait_s += seconds_since(asked);
    if (!delivery) throw Error("the training data ended before the training did");
    step(delivery->value);

    auto& at = state_.at;
    state_.previous_progress = at.progress;
    at.step += 1;
    at.images += static_cast<std::int64_t>(delivery->value.size());
    at.progress = delivery->progress;
    at.cursor = delivery->cursor;
    epoch_begins = std::floor(at.progress) > std::floor(state_.previous_progress);
    end_boundary(epoch_begins);
  }
}

bool Trainer::finished() const {
  return state_.at.progress >= plan_.train.epochs ||
         (plan_.train.max_steps > 0 && state_.at.step >= plan_.train.max_steps);
}

void Trainer::step(const Batch& batch) {
  state_.lr = schedule_.rate(state_.at.progress, state_.at.step);
  state_.scalars.clear();
  descend(losses(batch));
  state_.scalars.emplace_back("lr", state_.lr);
  if (state_.at.bad_steps > 0)
    state_.scalars.emplace_back("bad_steps", static_cast<double>(state_.at.bad_steps));
}

Losses Trainer::losses(const Batch& batch) {
  const ComputeIn precision(type_, device_);
  return plan_.model.losses(
      batch, {.seed = static_cast<std::uint64_t>(plan_.train.seed), .step = state_.at.step});
}

// The step waits for the device here alone: losses and gradients' norms are read once all is queued.
void Trainer::descend(const Losses& losses) {
  if (losses.empty()) throw Error("the detector gave no losses");
  auto total = losses[0].second.reshape({});
  for (std::size_t i = 1; i < losses.size(); ++i) total = total + losses[i].second.reshape({});
  const bool scaled = type_ == at::kHalf;
  auto& scale = state_.at.loss_scale;
  const double factor = scaled ? scale.factor : 1;
  (scaled ? total * factor : total).backward();

  const auto values = values_of(losses);
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    state_.scalars.emplace_back(losses[i].first, values[i]);
    sum += values[i];
  }
  state_.scalars.emplace_back("loss", sum);
  if (scaled) state_.scalars.emplace_back("loss_scale", factor);
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (!std::isfinite(values[i]))
      return reject_step(fmt::format("the loss '{}' is {}", losses[i].first, values[i]));

  const auto done = optimizer_.step(state_.lr, factor);
  state_.scalars.emplace_back("gradient_norm", done.gradient_norm);
  if (done.not_finite.empty()) {
    if (scaled) scale.grow();
    state_.at.bad_in_a_row = 0;
    return;
  }
  if (scaled && scale.shrink())  // no fault of the model's: the search for a factor
    return spdlog::info("step {}: gradients overflow; the loss scale is {} from here on",
                        state_.at.step + 1, scale.factor);
  reject_step(fmt::format("the gradient of '{}' is not finite", done.not_finite));
}

void Trainer::reject_step(const std::string& why) {
  optimizer_.clear_gradients();
  state_.at.bad_steps += 1;
  state_.at.bad_in_a_row += 1;
  const auto message = fmt::format("step {}: {}", state_.at.step + 1, why);
  if (state_.at.bad_in_a_row >= kMaxBadInARow)
    throw Error(
        fmt::format("{}; that was the {}th such step in a row: lower optimizer.lr, set "
                    "optimizer.clip_norm, or look at the data",
                    message, state_.at.bad_in_a_row));
  spdlog::warn("{}; the step is skipped", message);
}

void Trainer::end_boundary(bool epoch_ended) {
  if (const auto signal = StopSignals::received(); !signal.empty()) state_.stop(signal);
  state_.is_last = finished();

  std::exception_ptr first;
  const auto guarded = [&](auto&& work) {
    try {
      work();
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  };
  guarded([&] { call("after_step", [&](Callback& c) { c.after_step(state_); }); });
  if (epoch_ended)
    guarded([&] { call("after_epoch", [&](Callback& c) { c.after_epoch(state_); }); });
  guarded([&] { settle(); });
  if (first) std::rethrow_exception(first);
}

void Trainer::settle() {
  std::exception_ptr first;
  try {
    hand_out_scalars();
  } catch (...) {
    first = std::current_exception();
  }
  save_if_asked();
  if (first) std::rethrow_exception(first);
}

void Trainer::hand_out_scalars() {
  auto reports = std::exchange(state_.late_, {});
  reports[state_.at.step] = {state_.now(), std::exchange(state_.published_, {})};
  for (auto& [step, report] : reports)
    std::ranges::stable_sort(report.second, {}, &Scalars::value_type::first);
  call("on_scalars", [&](Callback& c) {
    for (const auto& [step, report] : reports) c.on_scalars(state_, report.first, report.second);
  });
}

void Trainer::save_if_asked() {
  if (!std::exchange(state_.save_asked_, false)) return;
  const auto folder = write_checkpoint(state_.folder / "checkpoints",
                                       {.at = state_.at,
                                        .seed = static_cast<std::uint64_t>(plan_.train.seed),
                                        .callbacks = callbacks_.save_states(),
                                        .model = named_values(plan_.model),
                                        .optimizer = optimizer_.state(),
                                        .config = plan_.config});
  call("on_checkpoint", [&](Callback& c) { c.on_checkpoint(state_, folder); });
}

}  // namespace millrace
