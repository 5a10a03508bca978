// What happens around training steps. A callback says what to do; `every` in its table says when
// (every.h).
//
//   before_train
//     before_epoch
//       before_step -> step -> after_step
//     after_epoch
//   after_train                      always, also after an exception
//
// A step boundary is after_step, after_epoch if an epoch ended, trigger of those that are due
// (When), on_checkpoint if a checkpoint has been written, on_scalars (ReadsMetrics), then the
// checkpoint if one was asked for; before_train (with the triggers of `at_start`) and after_train
// end with the last three. Within each of these, the order of callbacks never changes a result:
// published metrics, new hyper-parameters and requests for checkpoints take effect once all have
// been called. So what a trigger reads must be up to date after after_step. If a callback throws,
// the others are still called, and training ends with the first exception. All hooks run on the
// training thread.
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

/// For metrics and state in checkpoints see callback_roles.h.
class Callback {
 public:
  virtual ~Callback() = default;

  virtual void before_train(const TrainState&) {}
  virtual void before_epoch(const TrainState&) {}
  virtual void before_step(const TrainState&) {}
  virtual void after_step(const TrainState&) {}
  virtual void after_epoch(const TrainState&) {}
  virtual void after_train(const TrainState&) {}

  /// Called as often as `every` says.
  virtual void trigger(const TrainState&) {}

  /// The checkpoint of an earlier step has been written to `folder`, in the background: called at
  /// the first step boundary after that, before on_scalars and before the next one is begun. Since
  /// the disk decides when, nothing here may change what save_state returns.
  virtual void on_checkpoint(const TrainState&, const std::filesystem::path& folder) {
    (void)folder;
  }

  /// False: runs on every rank, triggered at the same steps, when the chief says so. Only
  /// before_train, trigger and after_train may wait for other ranks (state.cluster), and
  /// after_train only if state.failure is empty. save_state and on_checkpoint are called on the
  /// chief alone; load_state gives every rank what the chief saved.
  virtual bool chief_only() const { return true; }
};

/// Makes a callback from its table without the keys of CallbackSwitches (recipe.h). `name`: of the
/// table, [callbacks.NAME].
struct CallbackFactory {
  std::function<std::unique_ptr<Callback>(const Config& table, const std::string& name)> create;
  bool by_default = false;     // part of every run unless its table says `enabled = false`
  bool keeps_weights = false;  // see KeepsWeights
  /// Its options that decide what is computed: all but those of Decides::run.
  std::function<std::vector<std::string>()> deciding;

  std::unique_ptr<Callback> operator()(const Config& table, const std::string& name) const {
    return create(table, name);
  }
};

/// All callbacks. Those with an option `every` are triggered.
Registry<CallbackFactory>& callbacks();

/// A callback class that is part of every run by default.
template <class C>
concept InEveryRun = C::kByDefault;

/// The options of `T` that decide more than Decides::run.
template <class T>
std::vector<std::string> deciding_options() {
  T value;
  std::vector<std::string> names;
  const auto all = described(value);
  for (const auto& entry : all.entries())
    if (entry.decided != Decides::run) names.push_back(entry.name);
  return names;
}

/// Registers the class `C`, made as C(options), or C(options, name) if it needs the name of its
/// table [callbacks.NAME]; see make_component for its options. `static constexpr bool kByDefault =
/// true` makes it part of every run. At namespace scope:
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
