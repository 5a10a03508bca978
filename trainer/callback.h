// The callback interface: hooks around training steps. The option `every` of a callback's table
// sets when its trigger() is called (every.h).
//
//   before_train
//     before_epoch
//       before_step -> step -> after_step
//     after_epoch
//   after_train                      always, also after an exception
//
// A step boundary follows each step. It calls, in this order: after_step, after_epoch if an epoch
// has ended, trigger of all callbacks that are due (When), on_checkpoint if a checkpoint has been
// written, and on_scalars (ReadsMetrics). Then it saves a checkpoint if one was requested.
// before_train (followed by the triggers with `at_start`) and after_train end with the last three
// as well.
//
// Within each hook, results do not depend on the order of callbacks: published metrics, new
// hyper-parameters and requests for checkpoints take effect after all callbacks have been called.
// Therefore state that trigger reads must be up to date after after_step. If a callback throws, the
// remaining callbacks are still called, and training ends with the first exception. All hooks run
// on the training thread.
#pragma once

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "millrace/base/registry.h"
#include "millrace/trainer/callback_roles.h"

namespace millrace {

/// Base class of callbacks. Metrics and state in checkpoints are separate roles, see
/// callback_roles.h.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void before_train(const TrainState&) {}
  virtual void before_epoch(const TrainState&) {}
  virtual void before_step(const TrainState&) {}
  virtual void after_step(const TrainState&) {}
  virtual void after_epoch(const TrainState&) {}
  virtual void after_train(const TrainState&) {}

  /// Called at the interval that the option `every` sets.
  virtual void trigger(const TrainState&) {}

  /// Called after the checkpoint of an earlier step has been written to `folder` in the background:
  /// at the next step boundary, before on_scalars and before another checkpoint is begun. The time
  /// of the call depends on the disk, so it must not change what save_state returns.
  virtual void on_checkpoint(const TrainState&, const std::filesystem::path& folder) {
    (void)folder;
  }

  /// True: the callback runs on rank 0 only. False: it runs on every rank and is triggered at the
  /// same steps, which rank 0 decides. Only before_train, trigger and after_train may then wait for
  /// other ranks (state.cluster), and after_train only if state.failure is empty. save_state and
  /// on_checkpoint are called on rank 0 only; load_state is called on every rank with the state of
  /// rank 0.
  virtual bool chief_only() const { return true; }
};

/// Creates a callback from its table [callbacks.NAME] without the keys of CallbackSwitches
/// (recipe.h). `name` is NAME.
struct CallbackFactory {
  std::function<std::unique_ptr<Callback>(const Config& table, const std::string& name)> create;
  bool by_default = false;     // true = part of every run unless its table has `enabled = false`
  bool keeps_weights = false;  // see KeepsWeights
  /// Returns the options that affect results: all except those with Affects::run.
  std::function<std::vector<std::string>()> deciding;

  std::unique_ptr<Callback> operator()(const Config& table, const std::string& name) const {
    return create(table, name);
  }
};

/// Registry of all callbacks. A callback with an option `every` is triggered.
Registry<CallbackFactory>& callbacks();

/// A callback class that is part of every run by default.
template <class C>
concept InEveryRun = C::kByDefault;

/// Returns the options of `T` that affect results: all except those with Affects::run.
template <class T>
std::vector<std::string> deciding_options() {
  T value;
  std::vector<std::string> names;
  const auto all = described(value);
  for (const auto& entry : all.entries())
    if (entry.affected != Affects::run) names.push_back(entry.name);
  return names;
}

/// Registers the class `C`, constructed as C(options), or as C(options, name) if it needs the NAME
/// of its table [callbacks.NAME]; see make_component for its options. A callback with `static
/// constexpr bool kByDefault = true` is part of every run. Use it at namespace scope:
///
///   MILLRACE_REGISTER(register_callback<KeepBest>("keep_best", "keeps the best checkpoint"));
template <std::derived_from<Callback> C>
bool register_callback(const std::string& name, std::string doc) {
  const auto create = [](const Config& table,
                         const std::string& own_name) -> std::unique_ptr<Callback> {
    auto options = read_options<OptionsOf<C>>(table);
    if constexpr (std::constructible_from<C, OptionsOf<C>, const std::string&>)
      return std::make_unique<C>(std::move(options), own_name);
    else
      return make_component<C>(std::move(options));
  };
  return callbacks().add<OptionsOf<C>>(
      name, std::move(doc),
      {create, InEveryRun<C>, std::derived_from<C, KeepsWeights>, deciding_options<OptionsOf<C>>});
}

}  // namespace millrace
