// What happens between two steps: hooks, metrics, hyper-parameters and checkpoints, in this order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "millrace/trainer/callback_list.h"
#include "millrace/trainer/checkpoint/checkpoint_writer.h"
#include "millrace/trainer/train_state.h"

namespace millrace {

/// Borrows all that it is made from. For the training thread.
class StepBoundary {
 public:
  /// `training` gives what a checkpoint keeps besides the state and the callbacks.
  StepBoundary(TrainState& state, CallbackList& callbacks, std::function<Checkpoint()> training)
      : state_(state), callbacks_(callbacks), training_(std::move(training)) {}

  /// Where checkpoints go; before the first.
  void set_folder(const std::filesystem::path& folder) { writer_.emplace(folder); }

  /// Calls a hook of all callbacks.
  void call(const char* name, const std::function<void(Callback&)>& hook) {
    callbacks_.each(name, state_, hook);
  }

  /// The boundary after a step.
  void end_step(bool epoch_ended);

  /// Tells the callbacks of a written checkpoint and of metrics, applies hyper-parameters, and
  /// saves a checkpoint if one was asked for, on disk or in memory.
  void settle();

  /// Tells the callbacks of a checkpoint that has been written.
  void hand_out_checkpoint(bool wait);

  /// Whether a callback of this rank has asked the chief for a checkpoint since the last call.
  bool wants_checkpoint() { return std::exchange(wants_checkpoint_, false); }

  /// On the chief: saves for another rank, unless that was done at this boundary.
  void save_for_others() {
    if (state_.is_chief && saved_step_ != state_.at.step) save();
  }

 private:
  void hand_out_scalars();
  void save_if_asked();
  void save();
  void save_in_memory_if_asked();
  Checkpoint checkpoint() const;

  TrainState& state_;
  CallbackList& callbacks_;
  const std::function<Checkpoint()> training_;
  std::optional<CheckpointWriter> writer_;
  std::int64_t saved_step_ = -1;  // of the newest checkpoint that was begun
  bool wants_checkpoint_ = false;
};

}  // namespace millrace
