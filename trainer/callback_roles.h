// Optional roles of callbacks besides their hooks. Each role is a base class:
//
//   class KeepBest final : public Callback, public ReadsMetrics, public SavesState { ... };
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/metrics.h"

namespace millrace {

class TrainState;

/// Publishes metrics (TrainState::publish).
class PublishesMetrics {
 public:
  /// Returns all metrics that the callback may publish; "val/*" stands for all names that begin
  /// with "val/". Publishing any other name is an error; so is returning a name that the training
  /// itself reports ("loss", "lr") or that another callback publishes. Called when the run is
  /// created and again after before_train, when the list may have changed.
  virtual std::vector<std::string> publishes() const = 0;

 protected:
  ~PublishesMetrics() = default;
};

/// Reads metrics.
class ReadsMetrics {
 public:
  /// Returns the metrics that the callback acts on. A metric that no callback publishes is an error
  /// before the first step; a metric that was never published is a warning at the end. Called when
  /// the run is created.
  virtual std::vector<std::string> watches() const { return {}; }

  /// Receives the metrics published at this step boundary, sorted by name. Called once for each
  /// earlier moment that has new metrics, in order, and then once for the boundary itself, often
  /// with no metrics. The step's own metrics are in the state.
  virtual void on_scalars(const TrainState&, const Moment& of, const Scalars&) = 0;

  /// Receives a picture that was published at this step boundary. Called before on_scalars.
  virtual void on_picture(const TrainState&, const Picture&) {}

 protected:
  ~ReadsMetrics() = default;
};

/// Saves state in checkpoints. For files that a callback appends to, see appended_file.h.
class SavesState {
 public:
  /// Returns the state that a resumed run needs to continue as if it had never stopped; null = no
  /// state. Strings must be UTF-8; JSON has no NaN. Called on rank 0.
  virtual nlohmann::json save_state() const = 0;

  /// Called before before_train, on every rank that the callback runs on. The training's state is
  /// already that of the checkpoint.
  virtual void load_state(const TrainState&, const nlohmann::json& saved) = 0;

 protected:
  ~SavesState() = default;
};

/// Saves tensors in checkpoints, as callback.NAME.safetensors.
class SavesTensors {
 public:
  /// Returns tensors that are copied before the training continues.
  virtual NamedTensors save_tensors() const = 0;
  virtual void load_tensors(const TrainState&, const NamedTensors& saved) = 0;

 protected:
  ~SavesTensors() = default;
};

/// Keeps tensors that form a set of the model's weights, which other callbacks can use.
class KeepsWeights : public SavesTensors {
 protected:
  ~KeepsWeights() = default;
};

/// Uses the weights of a KeepsWeights callback (TrainState::kept_by).
class UsesWeights {
 public:
  /// Returns the name of that callback; empty = the trained weights. A name that does not exist is
  /// an error before the run.
  virtual std::string weights_of() const = 0;

 protected:
  ~UsesWeights() = default;
};

/// Needs the validation split. If the split cannot be opened, the run does not start.
class NeedsValidation {
 protected:
  ~NeedsValidation() = default;
};

}  // namespace millrace
