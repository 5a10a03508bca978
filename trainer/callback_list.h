// The callbacks of a run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/do_all.h"
#include "millrace/trainer/every.h"

namespace millrace {

class CallbackList {
 public:
  /// Adds a callback. `when`: time of its trigger, nullopt = never. `plugin`: the plug-in that
  /// registered it, empty = built in.
  void add(std::string name, std::unique_ptr<Callback> callback,
           std::optional<When> when = std::nullopt, std::string plugin = {});

  /// Returns true if any callback is a NeedsValidation.
  bool need_validation() const;

  /// Collects the metrics that callbacks publish and watch. Throws ConfigError if two callbacks
  /// publish the same name, if a name is reserved for the training itself, or if no callback
  /// publishes a metric that a callback or condition watches. Called when all callbacks are added,
  /// and again after before_train.
  void check_metrics();

  /// Warns about each watched metric that was never published.
  void warn_unpublished_metrics(const TrainState& state) const;

  /// Calls `work` for every callback that runs on this rank and has the role, even if some throw.
  /// Then throws the first failure, with the callback's name and `hook`; later failures are logged.
  template <class Role = Callback>
  void each(const char* hook, TrainState& state,
            const std::type_identity_t<std::function<void(Role&)>>& work) {
    DoAll all;
    for (const auto& named : all_)
      if (auto* callback = named.as<Role>())
        all.then([&] { call(named, hook, state, [&] { work(*callback); }); });
    all.done();
  }

  /// Calls `trigger` of the callbacks that are due after a step, or before the first step if
  /// `at_start`; handles failures like each().
  void trigger(TrainState& state, bool at_start = false);

  /// States (JSON text) and tensors by callback name; empty ones are omitted.
  std::map<std::string, std::string> save_states() const;
  std::map<std::string, NamedTensors> save_tensors() const;

  /// Returns the tensors of one callback. Throws ConfigError if that callback does not exist.
  NamedTensors tensors_of(const std::string& name) const;

  /// Restores saved states and tensors in the callbacks of this rank. Throws Error naming a
  /// callback that cannot use its state.
  void load(TrainState& state, const std::map<std::string, std::string>& states,
            const std::map<std::string, NamedTensors>& tensors);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Callback> callback;
    std::optional<When> when;
    std::string plugin;
    std::vector<std::string> watches = {};    // watched metrics, including that of its condition
    std::vector<std::string> publishes = {};  // result of the last call of publishes()
    // Names that only an earlier call of publishes() returned.
    std::vector<std::string> withdrawn = {};

    ComponentName title() const { return {"callback", name, plugin}; }

    /// Returns nullptr if the callback does not have the role.
    template <class Role>
    Role* as() const {
      return dynamic_cast<Role*>(callback.get());
    }
    std::vector<std::string> ask_publishes() const;
  };

  /// Throws ConfigError because no callback publishes `name`.
  [[noreturn]] void refuse_watched(const Named& watcher, const std::string& name) const;

  /// Does nothing if the callback does not run on this rank.
  static void call(const Named& named, const char* hook, TrainState& state,
                   const std::function<void()>& work);

  std::vector<Named> all_;
};

}  // namespace millrace
