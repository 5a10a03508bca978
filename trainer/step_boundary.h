// The work between two steps: hooks, metrics, hyper-parameters and checkpoints, in this order.
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

/// Runs step boundaries. Borrows its arguments. For the training thread.
class StepBoundary {
 public:
  /// `training` returns a checkpoint with everything except the state and the callbacks.
  StepBoundary(TrainState& state, CallbackList& callbacks, std::function<Checkpoint()> training)
      : state_(state), callbacks_(callbacks), training_(std::move(training)) {}

  /// Sets the folder of checkpoints; call before the first one.
  void set_folder(const std::filesystem::path& folder) { writer_.emplace(folder); }

  void call(const char* name, const std::function<void(Callback&)>& hook) {
    callbacks_.each(name, state_, hook);
  }

  /// Runs the boundary after a step.
  void end_step(bool epoch_ended);

  /// Passes written checkpoints and published metrics to the callbacks, applies hyper-parameters,
  /// and saves a checkpoint, on disk or in memory, if one was requested.
  void process_requests();

  /// Calls on_checkpoint if a checkpoint has been written. `wait`: first waits for one that is
  /// being written.
  void deliver_checkpoint(bool wait);

  /// Returns true if a callback of this rank has requested a checkpoint from rank 0 since the last
  /// call.
  bool wants_checkpoint() { return std::exchange(wants_checkpoint_, false); }

  /// On rank 0: saves a checkpoint for another rank, unless one was saved at this boundary.
  void save_for_others() {
    if (state_.is_chief && saved_step_ != state_.at.step) save();
  }

 private:
  void deliver_scalars();
  void save_if_asked();
  void save();
  void save_in_memory_if_asked();
  Checkpoint checkpoint() const;

  TrainState& state_;
  CallbackList& callbacks_;
  const std::function<Checkpoint()> training_;
  std::optional<CheckpointWriter> writer_;
  std::int64_t saved_step_ = -1;  // step of the last checkpoint whose writing was begun
  bool wants_checkpoint_ = false;
};

}  // namespace millrace
