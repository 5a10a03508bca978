// What happens around training steps. A callback says what to do; `every` in its table says when
// (every.h).
//
//   before_train
//     before_epoch
//       before_step -> step -> after_step
//     after_epoch
//   after_train                      always, also after an exception
//
// A step boundary is after_step (of all), after_epoch where an epoch ended, trigger of those that
// are due (When), on_checkpoint if one has become whole, on_scalars (of those that read metrics),
// then the checkpoint if one was asked for; before_train (and the triggers of those with
// `at_start`) and after_train end with the last three. Within each of these, the order of callbacks
// never changes a result: metrics that one publishes, hyper-parameters that it sets and checkpoints
// that it asks for take effect only when all have been called. What a trigger looks at is therefore
// brought up to date in after_step. Where some throw, the others are still called, and training
// ends with the first exception. All hooks run on the training thread.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "millrace/base/registry.h"
#include "millrace/trainer/callback_roles.h"

namespace millrace {

/// What it publishes, reads and keeps in checkpoints: callback_roles.h.
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

  /// The checkpoint of an earlier step is whole, in `folder`. It is written while the training
  /// continues: this is called at the first step boundary at which it is whole, before on_scalars
  /// and before the next one is begun. Since the disk decides when, nothing here may change what
  /// save_state returns.
  virtual void on_checkpoint(TrainState&, const std::filesystem::path& folder) { (void)folder; }

  /// False: runs on every rank, not only on the chief. What the chief decides then holds for all:
  /// it is triggered on all ranks at the same steps. Only before_train, trigger and after_train may
  /// wait for the others (state.cluster), and after_train only where state.failure is empty.
  /// Checkpoints, and so save_state and on_checkpoint, are the chief's; load_state gives every rank
  /// what the chief saved.
  virtual bool chief_only() const { return true; }
};

/// Makes a callback from its table (without the keys that recipe.h takes out).
struct CallbackFactory {
  std::function<std::unique_ptr<Callback>(const Config& table)> create;
  bool by_default = false;     // part of every run unless its table says `enabled = false`
  bool keeps_weights = false;  // see KeepsWeights

  std::unique_ptr<Callback> operator()(const Config& table) const { return create(table); }
};

/// All known callbacks. Those whose options describe `every` are triggered by it.
Registry<CallbackFactory>& callbacks();

/// A callback class that is part of every run unless its table says `enabled = false`.
template <class C>
concept InEveryRun = C::kByDefault;

/// Registers the class `C`, which names its options and is made from them as make_component says. A
/// member `static constexpr bool kByDefault = true` makes it InEveryRun. At namespace scope:
///
///   MILLRACE_REGISTER(register_callback<KeepBest>("keep_best", "keeps the best checkpoint"));
template <std::derived_from<Callback> C>
bool register_callback(const std::string& name, std::string doc) {
  const auto create = [](const Config& table) -> std::unique_ptr<Callback> {
    return make_component<C>(read_options<OptionsOf<C>>(table));
  };
  return callbacks().add<OptionsOf<C>>(name, std::move(doc),
                                       {create, InEveryRun<C>, std::derived_from<C, KeepsWeights>});
}

}  // namespace millrace
