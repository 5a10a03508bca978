// The callbacks of one run, called as one.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "millrace/base/errors.h"
#include "millrace/trainer/callback.h"
#include "millrace/trainer/every.h"

namespace millrace {

class CallbackList {
 public:
  /// `when`: it is triggered; nothing: never. `plugin` brought it; empty: built in.
  void add(std::string name, std::unique_ptr<Callback> callback,
           std::optional<When> when = std::nullopt, std::string plugin = {});

  /// Asks all what they publish. Throws ConfigError where one takes a name that another or the
  /// training has, and naming the nearest where a callback watches, or a condition looks at, what
  /// none of the list publishes. Once when all are added, and again after before_train.
  void check_metrics();

  /// Warns of each watched metric that was published by nobody until the end.
  void tell_what_never_came(const TrainState& state) const;

  /// Calls every callback that runs on this rank and has the role. Where some throw, the others are
  /// still called, and the first failure is thrown again, with the callback's name and `hook` in
  /// front; all others are logged.
  template <class Role = Callback>
  void each(const char* hook, TrainState& state,
            const std::type_identity_t<std::function<void(Role&)>>& work) {
    std::exception_ptr first;
    for (auto& named : all_)
      if (auto* callback = named.as<Role>())
        call(
            named, hook, state, [&] { work(*callback); }, first);
    if (first) std::rethrow_exception(first);
  }

  /// Calls `trigger` of those that are due, in the same way. Once after each step. The chief says
  /// which they are where ranks could differ.
  void trigger(TrainState& state);

  /// The same for those that are due before the first step.
  void trigger_at_start(TrainState& state);

  /// States as JSON text by callback name; those without any are left out.
  std::map<std::string, std::string> save_states() const;
  std::map<std::string, NamedTensors> save_tensors() const;

  /// What one callback keeps. Throws ConfigError naming the nearest where there is none of that
  /// name.
  NamedTensors tensors_of(const std::string& name) const;

  /// Throws Error naming the callback that cannot use what it is given. On the chief all are given
  /// theirs, on other ranks those alone that run there.
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
    std::vector<std::string> withdrawn = {};  // named before, and no more

    ComponentName title() const { return {"callback", name, plugin}; }

    /// nullptr where it does not have the role.
    template <class Role>
    Role* as() const {
      return dynamic_cast<Role*>(callback.get());
    }
    std::vector<std::string> ask_publishes() const;
    std::vector<std::string> ask_watches() const;
  };

  /// Throws ConfigError where `name` can be published by nobody.
  [[noreturn]] void refuse_watched(const Named& watcher, const std::string& name) const;

  void trigger_if(TrainState& state, const std::function<bool(When&)>& is_due);

  /// Whether ranks could differ in when they trigger a callback that runs on all.
  bool is_chief_asked() const;

  /// `failure` receives what it throws, unless it holds something already.
  void call(Named& named, const char* hook, TrainState& state, const std::function<void()>& work,
            std::exception_ptr& failure);

  std::vector<Named> all_;
};

}  // namespace millrace
