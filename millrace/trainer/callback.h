// What happens around training steps. A callback says what to do; `every` in its table says when
// (every.h).
//
//   before_train
//     before_epoch
//       before_step -> step -> after_step
//     after_epoch
//   after_train                      always, also after an exception
//
// A step boundary is after_step (of all), after_epoch where an epoch ended, trigger of those that are
// due (When), on_checkpoint if one has become whole, on_scalars, then the checkpoint if one was asked for; before_train
// (and the triggers of those with `at_start`) and after_train end with the last three. Within each of these, the order of
// callbacks never changes a result: scalars
// that one publishes, hyper-parameters that it sets and checkpoints that it asks for take effect only
// when all have been called. What a trigger looks at is therefore brought up to date in after_step.
// Where some throw, the others are still called, and training ends with the first exception. All
// hooks run on the training thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/registry.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

class TrainState;

/// Figures by name.
using Scalars = std::vector<std::pair<std::string, double>>;

/// What a figure of single steps is over several of them: losses, norms and shares are means; rates, hyper-parameters and
/// counts since the training began are what they were last.
enum class FigureKind { mean, last };

/// A figure of one step.
struct StepFigure {
  std::string name;
  double value = 0;
  FigureKind kind = FigureKind::mean;
  friend bool operator==(const StepFigure&, const StepFigure&) = default;
};
using StepFigures = std::vector<StepFigure>;

/// A point of the training that figures speak of.
struct Moment {
  std::int64_t step = 0;
  double progress = 0;  // epochs
};

/// A picture that a callback has drawn.
struct Picture {
  std::string name;            // the same for the same subject at every step
  std::filesystem::path file;  // a JPEG
};

class Callback {
 public:
  virtual ~Callback() = default;

  virtual void before_train(TrainState&) {}
  virtual void before_epoch(TrainState&) {}
  virtual void before_step(TrainState&) {}
  virtual void after_step(TrainState&) {}
  virtual void after_epoch(TrainState&) {}
  virtual void after_train(TrainState&) {}

  /// What `every` repeats.
  virtual void trigger(TrainState&) {}

  /// What callbacks have published at this step boundary, sorted by name: once for each earlier
  /// moment that some figures speak of, in their order, then once for the boundary itself, often
  /// with nothing. The step's own scalars are in the state.
  virtual void on_scalars(TrainState&, const Moment& of, const Scalars&) { (void)of; }

  /// A picture that was published at this step boundary, before on_scalars.
  virtual void on_picture(TrainState&, const Picture&) {}

  /// The checkpoint of an earlier step lies whole in `folder`. It is written while the training goes on: this comes at
  /// the first step boundary at which it is whole, before anything that speaks of earlier steps (on_scalars) and before
  /// the next one is begun. Since the disk decides when, nothing here may change what save_state gives.
  virtual void on_checkpoint(TrainState&, const std::filesystem::path& folder) { (void)folder; }

  /// What a resumed run needs to go on as if it had never stopped, as JSON; empty: nothing. Files that a callback
  /// appends to: appended_file.h.
  virtual std::string save_state() const { return {}; }
  /// Called before before_train with what save_state gave. The state stands where the checkpoint was taken.
  virtual void load_state(TrainState&, const std::string& json) { (void)json; }

  /// The same for tensors, which lie in the checkpoint as callback.NAME.safetensors. They are copied before the
  /// training goes on.
  virtual NamedTensors save_tensors() const { return {}; }
  virtual void load_tensors(TrainState&, const NamedTensors& tensors) { (void)tensors; }

  /// The names of all that it may publish; "val/*" stands for all that begin so. It is an error to publish anything
  /// else, to name what a training says of each of its steps ("loss", "lr"), or what another callback names. Asked when
  /// the run is put together, and again behind before_train, when it may know better.
  virtual std::vector<std::string> publishes() const { return {}; }

  /// Published scalars that it acts on. A name that no callback of the run publishes is an error before the first step,
  /// one that has not appeared when the run ends is told. Asked when the run is put together.
  virtual std::vector<std::string> watches() const { return {}; }

  /// The callback whose weights (save_tensors) it works with instead of the trained ones; empty: none. One that this run
  /// does not have, or that keeps none (CallbackFactory::keeps_weights), is an error before the run.
  virtual std::string uses_weights_of() const { return {}; }

  /// False: runs on every rank, not only on the chief. What the chief decides then holds for all: it is triggered on all
  /// ranks at the same steps. Only before_train, trigger and after_train may wait for the others (state.cluster), and
  /// after_train only where state.failure is empty. Checkpoints, and so save_state and on_checkpoint, are the chief's;
  /// load_state gives every rank what the chief saved.
  virtual bool chief_only() const { return true; }
};

/// Makes a callback from its table (without the keys that recipe.h takes out).
struct CallbackFactory {
  using Create = std::function<std::unique_ptr<Callback>(const Config& table)>;

  CallbackFactory(Create make, bool always = false, bool weights = false)
      : create(std::move(make)), by_default(always), keeps_weights(weights) {}
  std::unique_ptr<Callback> operator()(const Config& table) const { return create(table); }

  Create create;
  bool by_default;     // part of every run unless its table says `enabled = false`
  bool keeps_weights;  // its save_tensors gives a set of the model's weights
};

/// All known callbacks. Those whose options describe `every` are triggered by it.
Registry<CallbackFactory>& callbacks();

}  // namespace millrace
