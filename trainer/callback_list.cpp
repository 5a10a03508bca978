#include "trainer/callback_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "trainer/train_state.h"

namespace millrace {

void CallbackList::add(std::string name, std::unique_ptr<Callback> callback,
                       std::optional<When> when, std::string plugin) {
  all_.push_back({std::move(name), std::move(callback), std::move(when), std::move(plugin)});
}

std::vector<std::string> CallbackList::watched(const Named& named) {
  auto names = named.callback->watches();
  if (!named.when || !named.when->only_if()) return names;
  const auto& name = named.when->only_if()->name();
  const auto& always = Condition::step_figures();
  if (std::ranges::find(always, name) == always.end()) names.push_back(name);
  return names;
}

void CallbackList::check_metrics() const {
  std::vector<std::string> published;
  for (const auto& named : all_)
    std::ranges::copy(named.callback->publishes(), std::back_inserter(published));
  const auto covers = [](std::string_view pattern, const std::string& name) {
    return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1))
                                  : name == pattern;
  };
  for (const auto& named : all_)
    for (const auto& name : watched(named))
      if (std::ranges::none_of(published, [&](const auto& one) { return covers(one, name); }))
        throw ConfigError(fmt::format("callbacks.{}: no callback of this run publishes '{}'{}",
                                      named.name, name, suggestion(name, published)));
}

void CallbackList::tell_what_never_came(const TrainState& state) const {
  for (const auto& named : all_)
    for (const auto& name : watched(named))
      if (!state.latest.contains(name))
        spdlog::warn(
            "callbacks.{} waited for '{}', which nobody has published in this run: it did nothing",
            named.name, name);
}

void CallbackList::call(Named& named, const char* hook, TrainState& state,
                        const std::function<void(Callback&)>& call, std::exception_ptr& failure) {
  if (!state.is_chief && named.callback->chief_only()) return;
  const auto began = Activity::Clock::now();
  state.activity.begin(fmt::format("callback '{}' in {}", named.name, hook));
  state.caller = named.name;
  const auto failed = [&](const auto& error) {
    spdlog::error(error.what());
    if (!failure) failure = std::make_exception_ptr(error);
  };
  const auto why = [&](const char* what) {
    return fmt::format("callback '{}'{} failed in {}: {}", named.name, of_plugin(named.plugin),
                       hook, what);
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
  trigger_if(state, [&](When& when) { return when.is_due(state); });
}

void CallbackList::trigger_at_start(TrainState& state) {
  trigger_if(state, [&](When& when) { return when.is_due_at_start(state); });
}

void CallbackList::trigger_if(TrainState& state, const std::function<bool(When&)>& is_due) {
  std::exception_ptr first;
  for (auto& named : all_)
    if (named.when && is_due(*named.when))
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

NamedTensors CallbackList::tensors_of(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& named : all_) {
    if (named.name == name) return named.callback->save_tensors();
    names.push_back(named.name);
  }
  throw ConfigError(fmt::format("this run has no callback '{}'{}", name, suggestion(name, names)));
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
          "the checkpoint's state of callback '{}'{} cannot be used; was it written by another "
          "version? {}",
          named.name, of_plugin(named.plugin), problem.what()));
    }
}

}  // namespace millrace
