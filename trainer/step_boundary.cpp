#include "millrace/trainer/step_boundary.h"

#include <algorithm>
#include <cmath>

#include "millrace/trainer/activity.h"
#include "millrace/trainer/checkpoint/checkpoint_holds.h"
#include "millrace/trainer/checkpoint/memory_checkpoints.h"
#include "millrace/trainer/do_all.h"
#include "millrace/trainer/phase.h"

namespace millrace {

void StepBoundary::end_step(bool epoch_ended) {
  DoAll all;
  all.then([&] { call("after_step", [&](Callback& c) { c.after_step(state_); }); });
  if (epoch_ended)
    all.then([&] { call("after_epoch", [&](Callback& c) { c.after_epoch(state_); }); });
  all.then([&] { callbacks_.trigger(state_); });
  if (all.has_failed()) state_.failure = all.failure();
  all.then([&] { process_requests(); }).done();
}

void StepBoundary::process_requests() {
  DoAll all;
  all.then([&] { deliver_checkpoint(/*wait=*/!state_.requests_.late.empty()); })
      .then([&] { deliver_scalars(); })
      .then([&] { state_.hyper.apply(); });
  // A resumed training must repeat what has failed, so there is no checkpoint of this step.
  if (!all.has_failed() && state_.failure.empty())
    all.then([&] { save_if_asked(); }).then([&] { save_in_memory_if_asked(); });
  all.done();
}

void StepBoundary::deliver_scalars() {
  auto reports = std::exchange(state_.requests_.late, {});
  reports[state_.at.step] = {state_.now(), std::exchange(state_.requests_.metrics, {})};
  for (auto& [step, report] : reports)
    std::ranges::stable_sort(report.second, {}, &Scalars::value_type::first);
  for (const auto& [step, report] : reports)
    for (const auto& [name, value] : report.second)
      state_.latest[name] = std::isfinite(value) ? value : std::nan("");
  auto metrics = state_.latest;
  for (const auto& one : state_.scalars) metrics[one.name] = one.value;
  state_.activity->set_metrics(std::move(metrics));
  const auto pictures = std::exchange(state_.requests_.pictures, {});
  if (!pictures.empty())
    callbacks_.each<ReadsMetrics>("on_picture", state_, [&](ReadsMetrics& c) {
      for (const auto& picture : pictures) c.on_picture(state_, picture);
    });
  callbacks_.each<ReadsMetrics>("on_scalars", state_, [&](ReadsMetrics& c) {
    for (const auto& [step, report] : reports) c.on_scalars(state_, report.first, report.second);
  });
}

void StepBoundary::deliver_checkpoint(bool wait) {
  const auto folder = [&] {
    const Phase phase(state_, &Spent::checkpoints_s, wait ? "checkpoint" : "",
                      "waits for the checkpoint to be written");
    return writer_->collect(wait);
  }();
  if (!folder) return;
  state_.checkpoint_holds->on_written();
  call("on_checkpoint", [&](Callback& c) { c.on_checkpoint(state_, *folder); });
}

void StepBoundary::save_if_asked() {
  if (!std::exchange(state_.requests_.checkpoint, false)) return;
  if (state_.is_chief)
    save();
  else
    wants_checkpoint_ = true;
}

void StepBoundary::save() {
  deliver_checkpoint(/*wait=*/true);
  saved_step_ = state_.at.step;
  const Phase phase(state_, &Spent::checkpoints_s, "checkpoint", "copies a checkpoint");
  writer_->write(checkpoint());
  state_.checkpoint_holds->on_taken();
}

void StepBoundary::save_in_memory_if_asked() {
  if (!std::exchange(state_.requests_.memory_checkpoint, false)) return;
  const Phase phase(state_, &Spent::checkpoints_s, "checkpoint", "copies a checkpoint into memory");
  state_.requests_.memory->save(checkpoint());
}

Checkpoint StepBoundary::checkpoint() const {
  auto checkpoint = training_();
  checkpoint.at = state_.at;
  checkpoint.hyper = state_.hyper.changed();
  checkpoint.latest = state_.latest;
  if (state_.is_chief) checkpoint.callbacks = callbacks_.save_states();
  checkpoint.callback_tensors = callbacks_.save_tensors();
  return checkpoint;
}

}  // namespace millrace
