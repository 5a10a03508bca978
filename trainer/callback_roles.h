// What a callback may do besides its hooks. Each role is a base class:
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
  /// All metrics that it may publish; "val/*" stands for all that begin with "val/". It is an error
  /// to publish any other, or to name what the training itself reports ("loss", "lr") or what
  /// another callback publishes. Called when the run is made, and again after before_train, when it
  /// may know better.
  virtual std::vector<std::string> publishes() const = 0;

 protected:
  ~PublishesMetrics() = default;
};

/// Reads metrics.
class ReadsMetrics {
 public:
  /// The metrics that it acts on. One that no callback publishes is an error before the first step,
  /// one that never came is a warning at the end. Called when the run is made.
  virtual std::vector<std::string> watches() const { return {}; }

  /// What was published at this step boundary, sorted by name: one call for each earlier moment
  /// that metrics describe, in order, then one for the boundary itself, often with none. The step's
  /// own metrics are in the state.
  virtual void on_scalars(const TrainState&, const Moment& of, const Scalars&) = 0;

  /// A picture that was published at this step boundary; called before on_scalars.
  virtual void on_picture(const TrainState&, const Picture&) {}

 protected:
  ~ReadsMetrics() = default;
};

/// Has state for checkpoints. For files that it appends to see appended_file.h.
class SavesState {
 public:
  /// What a resumed run needs to continue as if never stopped; null: nothing. Strings must be
  /// UTF-8; JSON has no NaN. Called on the chief.
  virtual nlohmann::json save_state() const = 0;

  /// Called before before_train, on every rank that the callback runs on; the training's state is
  /// that of the checkpoint.
  virtual void load_state(const TrainState&, const nlohmann::json& saved) = 0;

 protected:
  ~SavesState() = default;
};

/// The same for tensors, which checkpoints keep as callback.NAME.safetensors.
class SavesTensors {
 public:
  /// They are copied before the training continues.
  virtual NamedTensors save_tensors() const = 0;
  virtual void load_tensors(const TrainState&, const NamedTensors& saved) = 0;

 protected:
  ~SavesTensors() = default;
};

/// Its tensors are a set of the model's weights, for other callbacks to use.
class KeepsWeights : public SavesTensors {
 protected:
  ~KeepsWeights() = default;
};

/// Works with the weights of a KeepsWeights (TrainState::kept_by).
class UsesWeights {
 public:
  /// The name of that callback, an error before the run if there is none; empty: the trained
  /// weights.
  virtual std::string weights_of() const = 0;

 protected:
  ~UsesWeights() = default;
};

/// Needs the validation split: one that cannot be opened is an error before the run.
class NeedsValidation {
 protected:
  ~NeedsValidation() = default;
};

}  // namespace millrace
