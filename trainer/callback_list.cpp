#include "trainer/callback_list.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "base/errors.h"
#include "base/log.h"
#include "trainer/train_state.h"

namespace millrace {

void CallbackList::add(std::string name, std::unique_ptr<Callback> callback,
                       std::optional<Every> every) {
  all_.push_back({std::move(name), std::move(callback), every});
}

void CallbackList::call(Named& named, const char* hook, TrainState& state,
                        const std::function<void(Callback&)>& call, std::exception_ptr& failure) {
  if (!state.is_chief && named.callback->chief_only()) return;
  const auto began = Activity::Clock::now();
  state.activity.begin(fmt::format("callback '{}' in {}", named.name, hook));
  const auto failed = [&](const auto& error) {
    spdlog::error(error.what());
    if (!failure) failure = std::make_exception_ptr(error);
  };
  const auto why = [&](const char* what) {
    return fmt::format("callback '{}' failed in {}: {}", named.name, hook, what);
  };
  try {
    call(*named.callback);
  } catch (const ConfigError& problem) {
    failed(ConfigError(why(problem.what())));
  } catch (const std::exception& problem) {
    failed(Error(why(problem.what())));
  } catch (...) {
    failed(Error(why("it threw something that is no std::exception")));
  }
  const std::chrono::duration<double> took = Activity::Clock::now() - began;
  state.spent.by_callback[named.name] += took.count();
  state.spent.callbacks_s += took.count();
}

void CallbackList::each(const char* hook, TrainState& state,
                        const std::function<void(Callback&)>& work) {
  std::exception_ptr first;
  for (auto& named : all_) call(named, hook, state, work, first);
  if (first) std::rethrow_exception(first);
}

void CallbackList::trigger(TrainState& state) {
  std::exception_ptr first;
  for (auto& named : all_)
    if (named.every && named.every->is_due(state))
      call(
          named, "trigger", state, [&](Callback& c) { c.trigger(state); }, first);
  if (first) std::rethrow_exception(first);
}

std::map<std::string, std::string> CallbackList::save_states() const {
  std::map<std::string, std::string> states;
  for (const auto& named : all_)
    if (auto state = named.callback->save_state(); !state.empty())
      states[named.name] = std::move(state);
  return states;
}

std::map<std::string, NamedTensors> CallbackList::save_tensors() const {
  std::map<std::string, NamedTensors> result;
  for (const auto& named : all_)
    if (auto tensors = named.callback->save_tensors(); !tensors.empty())
      result[named.name] = std::move(tensors);
  return result;
}

void CallbackList::load(const std::map<std::string, std::string>& states,
                        const std::map<std::string, NamedTensors>& tensors) {
  for (auto& named : all_) try {
      if (const auto found = states.find(named.name); found != states.end())
        named.callback->load_state(found->second);
      if (const auto found = tensors.find(named.name); found != tensors.end())
        named.callback->load_tensors(found->second);
    } catch (const std::exception& problem) {
      throw Error(fmt::format(
          "the checkpoint's state of callback '{}' cannot be used; was it written by another "
          "version? {}",
          named.name, problem.what()));
    }
}

}  // namespace millrace
