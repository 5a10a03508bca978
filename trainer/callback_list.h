// The callbacks of one run, called as one.
#pragma once

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/callback.h"
#include "trainer/every.h"

namespace millrace {

class CallbackList {
 public:
  /// `when`: it is triggered; nothing: never. `plugin` brought it; empty: built in.
  void add(std::string name, std::unique_ptr<Callback> callback,
           std::optional<When> when = std::nullopt, std::string plugin = {});

  /// Throws ConfigError naming the nearest where a callback watches, or a condition looks at, what none of the list
  /// publishes.
  void check_metrics() const;

  /// Warns of each of these that was published by nobody until the end.
  void tell_what_never_came(const TrainState& state) const;

  /// Calls every callback that runs on this rank. Where some throw, the others are still called, each failure is logged,
  /// and the first is thrown again, with the callback's name and `hook` in front.
  void each(const char* hook, TrainState& state, const std::function<void(Callback&)>& call);

  /// Calls `trigger` of those that are due, in the same way. Once after each step. The chief says which they are where
  /// ranks could differ.
  void trigger(TrainState& state);

  /// The same for those that are due before the first step.
  void trigger_at_start(TrainState& state);

  /// States by callback name; those without any are left out.
  std::map<std::string, std::string> save_states() const;
  std::map<std::string, NamedTensors> save_tensors() const;

  /// What one callback keeps. Throws ConfigError naming the nearest where there is none of that name.
  NamedTensors tensors_of(const std::string& name) const;

  /// Throws Error naming the callback that cannot use what it is given. `chief`: of those that run on every rank, and
  /// only on the chief; else of the former alone.
  void load(const std::map<std::string, std::string>& states,
            const std::map<std::string, NamedTensors>& tensors, bool chief = true);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Callback> callback;
    std::optional<When> when;
    std::string plugin;
  };

  /// Published scalars that one acts on, those of its condition too.
  static std::vector<std::string> watched(const Named& named);

  /// What is said of a callback that throws.
  static std::string failure_text(const Named& named, const char* hook, const std::string& what);

  template <class Saved>
  std::map<std::string, Saved> saved(const char* hook, Saved (Callback::*save)() const) const;

  void trigger_if(TrainState& state, const std::function<bool(When&)>& is_due);

  /// Whether ranks could differ in when they trigger a callback that runs on all.
  bool is_chief_asked() const;

  /// `failure` receives what it throws, unless it holds something already.
  void call(Named& named, const char* hook, TrainState& state,
            const std::function<void(Callback&)>& call, std::exception_ptr& failure);

  std::vector<Named> all_;
};

}  // namespace millrace
