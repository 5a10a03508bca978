#include "trainer/callback_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>

#include "base/errors.h"
#include "base/log.h"
#include "base/text.h"
#include "base/wildcards.h"
#include "trainer/train_state.h"

namespace millrace {
namespace {

/// What the exception says that is being handled.
std::string what_is_thrown() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return problem.what();
  } catch (...) {
    return "it threw something that is no std::exception";
  }
}

}  // namespace

std::string CallbackList::failure_text(const Named& named, const char* hook,
                                       const std::string& what) {
  return fmt::format("callback '{}'{} failed in {}: {}", named.name, of_plugin(named.plugin), hook,
                     what);
}

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
  for (const auto& named : all_)
    for (const auto& name : watched(named))
      if (std::ranges::none_of(published,
                               [&](const auto& one) { return matches_wildcards(one, name); }))
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
  try {
    call(*named.callback);
  } catch (const ConfigError& problem) {
    failed(ConfigError(failure_text(named, hook, problem.what())));
  } catch (...) {
    failed(Error(failure_text(named, hook, what_is_thrown())));
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

bool CallbackList::is_chief_asked() const {
  return std::ranges::any_of(all_, [](const Named& named) {
    return named.when && !named.when->is_clear() && !named.callback->chief_only();
  });
}

void CallbackList::trigger_if(TrainState& state, const std::function<bool(When&)>& is_due) {
  std::string due;  // by callback
  for (auto& named : all_) due += named.when && is_due(*named.when) ? 'x' : ' ';
  if (is_chief_asked()) due = state.cluster->broadcast("what is due", due);
  std::exception_ptr first;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (due[i] == 'x')
      call(
          all_[i], "trigger", state, [&](Callback& c) { c.trigger(state); }, first);
  if (first) std::rethrow_exception(first);
}

template <class Saved>
std::map<std::string, Saved> CallbackList::saved(const char* hook,
                                                 Saved (Callback::*save)() const) const {
  std::map<std::string, Saved> result;
  for (const auto& named : all_) try {
      if (auto kept = (*named.callback.*save)(); !kept.empty())
        result[named.name] = std::move(kept);
    } catch (...) {
      throw Error(failure_text(named, hook, what_is_thrown()));
    }
  return result;
}

std::map<std::string, std::string> CallbackList::save_states() const {
  return saved("save_state", &Callback::save_state);
}

std::map<std::string, NamedTensors> CallbackList::save_tensors() const {
  return saved("save_tensors", &Callback::save_tensors);
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
                        const std::map<std::string, NamedTensors>& tensors, bool chief) {
  for (auto& named : all_) try {
      if (!chief && named.callback->chief_only()) continue;
      if (const auto found = states.find(named.name); found != states.end())
        named.callback->load_state(found->second);
      if (const auto found = tensors.find(named.name); found != tensors.end())
        named.callback->load_tensors(found->second);
    } catch (...) {
      throw Error(fmt::format(
          "the checkpoint's state of callback '{}'{} cannot be used; was it written by another "
          "version? {}",
          named.name, of_plugin(named.plugin), what_is_thrown()));
    }
}

}  // namespace millrace
