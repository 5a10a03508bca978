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
  /// `when` it is triggered; nothing: never. `plugin` that brought it; empty: built in.
  void add(std::string name, std::unique_ptr<Callback> callback,
           std::optional<When> when = std::nullopt, std::string plugin = {});

  /// Whether a callback is a NeedsValidation.
  bool need_validation() const;

  /// Asks all what they publish and watch. Throws ConfigError if two publish one name, if a name is
  /// the training's own, and if nobody publishes what a callback or condition watches. Called when
  /// all are added and again after before_train.
  void check_metrics();

  /// Warns of each watched metric that was never published.
  void tell_what_never_came(const TrainState& state) const;

  /// Calls every callback that runs on this rank and has the role, even if some throw. Throws the
  /// first failure, with the callback's name and `hook`; the others are logged.
  template <class Role = Callback>
  void each(const char* hook, TrainState& state,
            const std::type_identity_t<std::function<void(Role&)>>& work) {
    DoAll all;
    for (const auto& named : all_)
      if (auto* callback = named.as<Role>())
        all.then([&] { call(named, hook, state, [&] { work(*callback); }); });
    all.done();
  }

  /// Calls `trigger` of those that are due after a step, in the same way.
  void trigger(TrainState& state);

  /// The same for those that are due before the first step.
  void trigger_at_start(TrainState& state);

  /// States (JSON text) and tensors by callback; empty ones are left out.
  std::map<std::string, std::string> save_states() const;
  std::map<std::string, NamedTensors> save_tensors() const;

  /// The tensors of one callback. Throws ConfigError if there is no such callback.
  NamedTensors tensors_of(const std::string& name) const;

  /// Gives the callbacks of this rank what was saved. Throws Error naming one that cannot use it.
  void load(TrainState& state, const std::map<std::string, std::string>& states,
            const std::map<std::string, NamedTensors>& tensors);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Callback> callback;
    std::optional<When> when;
    std::string plugin;
    std::vector<std::string> watches = {};    // its condition included
    std::vector<std::string> publishes = {};  // as it said last
    std::vector<std::string> withdrawn = {};  // said before, not now

    ComponentName title() const { return {"callback", name, plugin}; }

    /// nullptr if it does not have the role.
    template <class Role>
    Role* as() const {
      return dynamic_cast<Role*>(callback.get());
    }
    std::vector<std::string> ask_publishes() const;
  };

  /// Throws ConfigError: nobody publishes `name`.
  [[noreturn]] void refuse_watched(const Named& watcher, const std::string& name) const;

  void trigger_if(TrainState& state, const std::function<bool(When&)>& is_due);

  /// Does nothing if it does not run on this rank.
  static void call(const Named& named, const char* hook, TrainState& state,
                   const std::function<void()>& work);

  std::vector<Named> all_;
};

}  // namespace millrace
