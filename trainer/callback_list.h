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
  /// `every`: when it is triggered; nothing: never.
  void add(std::string name, std::unique_ptr<Callback> callback,
           std::optional<Every> every = std::nullopt);

  /// Calls every callback that runs on this rank. Where some throw, the others are still called, each failure is logged,
  /// and the first is thrown again, with the callback's name and `hook` in front.
  void each(const char* hook, TrainState& state, const std::function<void(Callback&)>& call);

  /// Calls `trigger` of those whose period has passed, in the same way. Once after each step.
  void trigger(TrainState& state);

  /// States by callback name; those without any are left out.
  std::map<std::string, std::string> save_states() const;
  std::map<std::string, NamedTensors> save_tensors() const;
  /// Throws Error naming the callback that cannot use what it is given.
  void load(const std::map<std::string, std::string>& states,
            const std::map<std::string, NamedTensors>& tensors);

 private:
  struct Named {
    std::string name;
    std::unique_ptr<Callback> callback;
    std::optional<Every> every;
  };

  /// `failure` receives what it throws, unless it holds something already.
  void call(Named& named, const char* hook, TrainState& state,
            const std::function<void(Callback&)>& call, std::exception_ptr& failure);

  std::vector<Named> all_;
};

}  // namespace millrace
