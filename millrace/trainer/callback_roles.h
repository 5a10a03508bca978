// What a callback may do besides running in hooks. Each role is a base class that it derives from:
//
//   class KeepBest final : public Callback, public ReadsMetrics, public SavesState { ... };
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "millrace/trainer/metrics.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

class TrainState;

/// Publishes metrics (TrainState::publish).
class PublishesMetrics {
 public:
  /// The names of all metrics that it may publish; "val/*" stands for all that begin so. It is an
  /// error to publish any other, and to name what a training reports of each of its steps ("loss",
  /// "lr") or what another callback names. Called when the run is put together, and again after
  /// before_train, when it may know better.
  virtual std::vector<std::string> publishes() const = 0;

 protected:
  ~PublishesMetrics() = default;
};

/// Reads what callbacks publish.
class ReadsMetrics {
 public:
  /// The metrics that it acts on. One that no callback of the run publishes is an error before the
  /// first step, one that has not appeared when the run ends is a warning. Called when the run is
  /// put together.
  virtual std::vector<std::string> watches() const { return {}; }

  /// What was published at this step boundary, sorted by name: once for each earlier moment that
  /// some metrics describe, in their order, then once for the boundary itself, often with nothing.
  /// The step's own metrics are in the state.
  virtual void on_scalars(TrainState&, const Moment& of, const Scalars&) = 0;

  /// A picture that was published at this step boundary; called before on_scalars.
  virtual void on_picture(TrainState&, const Picture&) {}

 protected:
  ~ReadsMetrics() = default;
};

/// Has state that checkpoints keep. For files that it appends to see appended_file.h.
class SavesState {
 public:
  /// What a resumed run needs to continue as if it had never stopped; null: nothing. Strings must
  /// be UTF-8, and JSON has no NaN. Called on the chief.
  virtual nlohmann::json save_state() const = 0;

  /// Called before before_train, on every rank that the callback runs on, with what save_state
  /// returned. The training's state is that of the checkpoint.
  virtual void load_state(TrainState&, const nlohmann::json& saved) = 0;

 protected:
  ~SavesState() = default;
};

/// The same for tensors, which checkpoints keep as callback.NAME.safetensors.
class SavesTensors {
 public:
  /// They are copied before the training continues.
  virtual NamedTensors save_tensors() const = 0;
  virtual void load_tensors(TrainState&, const NamedTensors& saved) = 0;

 protected:
  ~SavesTensors() = default;
};

/// Keeps tensors that are a set of the model's weights, for other callbacks to use.
class KeepsWeights : public SavesTensors {
 protected:
  ~KeepsWeights() = default;
};

/// Works with weights that another callback keeps (TrainState::kept_by).
class UsesWeights {
 public:
  /// The name of that callback; empty: the trained weights. One that this run does not have, or
  /// that keeps no weights, is an error before the run.
  virtual std::string weights_of() const = 0;

 protected:
  ~UsesWeights() = default;
};

}  // namespace millrace
