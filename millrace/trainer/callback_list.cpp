#include "millrace/trainer/callback_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/base/wildcards.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

/// Published scalars that a condition looks at.
std::vector<std::string> watched_by(const std::optional<When>& when) {
  if (!when || !when->only_if()) return {};
  const auto& name = when->only_if()->name();
  const auto& always = Condition::step_figures();
  return std::ranges::count(always, name) > 0 ? std::vector<std::string>() : std::vector{name};
}

constexpr std::size_t kMostShown = 40;  // bytes of a state that is no JSON

/// The beginning of what may be anything, printable.
std::string shortened(const std::string& text) {
  std::string shown;
  for (const char c : text.substr(0, kMostShown))
    shown += std::isprint(static_cast<unsigned char>(c)) ? c : '?';
  return text.size() > kMostShown ? shown + "..." : shown;
}

bool has(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const auto& one) { return matches_wildcards(one, name); });
}

}  // namespace

void CallbackList::add(std::string name, std::unique_ptr<Callback> callback,
                       std::optional<When> when, std::string plugin) {
  Named named{std::move(name), std::move(callback), std::move(when), std::move(plugin)};
  named.watches = blaming(named.title(), "watches", [&] { return named.callback->watches(); });
  std::ranges::copy(watched_by(named.when), std::back_inserter(named.watches));
  named.publishes =
      blaming(named.title(), "publishes", [&] { return named.callback->publishes(); });
  all_.push_back(std::move(named));
}

void CallbackList::check_metrics() {
  std::map<std::string, const Named*> owners;
  for (auto& named : all_) {
    auto names = blaming(named.title(), "publishes", [&] { return named.callback->publishes(); });
    for (auto& before : named.publishes)
      if (!has(names, before)) named.withdrawn.push_back(before);
    named.publishes = std::move(names);
    for (const auto& name : named.publishes) {
      if (is_own_figure(name))
        throw ConfigError(fmt::format(
            "{0} names '{1}' in publishes(), which the training itself says of every step: choose "
            "another name, such as 'my/{1}'",
            named.title().text(), name));
      if (name.find('*') != std::string::npos) continue;
      if (const auto [owner, is_new] = owners.emplace(name, &named);
          !is_new && owner->second != &named)
        throw ConfigError(fmt::format(
            "callbacks.{} and callbacks.{} both publish '{}', so that nobody could tell whose it "
            "is: leave one out",
            owner->second->name, named.name, name));
    }
  }
  for (const auto& named : all_)
    for (const auto& name : named.watches)
      if (std::ranges::none_of(all_, [&](const auto& one) { return has(one.publishes, name); }))
        refuse_watched(named, name);
}

void CallbackList::refuse_watched(const Named& watcher, const std::string& name) const {
  std::vector<std::string> published;
  for (const auto& named : all_) std::ranges::copy(named.publishes, std::back_inserter(published));
  for (const auto& named : all_)
    if (has(named.withdrawn, name))
      throw ConfigError(fmt::format(
          "callbacks.{}: '{}' will never come: with this detector and these data callback '{}' "
          "does not publish it{}",
          watcher.name, name, named.name, suggestion(name, published)));
  throw ConfigError(fmt::format("callbacks.{}: no callback of this run publishes '{}'{}",
                                watcher.name, name, suggestion(name, published)));
}

void CallbackList::tell_what_never_came(const TrainState& state) const {
  for (const auto& named : all_)
    for (const auto& name : named.watches)
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
  state.may_publish_ = &named.publishes;
  const auto failed = [&](const auto& error) {
    if (failure)
      spdlog::error(error.what());
    else
      failure = std::make_exception_ptr(error);
  };
  try {
    call(*named.callback);
  } catch (const ConfigError& problem) {
    failed(ConfigError(failure_text(named.title(), hook, problem.what())));
  } catch (...) {
    failed(Error(failure_text(named.title(), hook, what_is_thrown())));
  }
  state.may_publish_ = nullptr;
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
  for (const auto& named : all_) {
    auto kept = blaming(named.title(), hook, [&] { return (*named.callback.*save)(); });
    if (!kept.empty()) result[named.name] = std::move(kept);
  }
  return result;
}

std::map<std::string, std::string> CallbackList::save_states() const {
  auto states = saved("save_state", &Callback::save_state);
  for (const auto& named : all_)
    if (const auto found = states.find(named.name);
        found != states.end() && !nlohmann::json::accept(found->second))
      throw Error(failure_text(
          named.title(), "save_state",
          fmt::format(
              "what it returns is no JSON: \"{}\"; return nlohmann::json{{{{...}}}}.dump(), "
              "or an empty string where there is nothing to keep",
              shortened(found->second))));
  return states;
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

void CallbackList::load(TrainState& state, const std::map<std::string, std::string>& states,
                        const std::map<std::string, NamedTensors>& tensors) {
  for (auto& named : all_) try {
      if (!state.is_chief && named.callback->chief_only()) continue;
      state.caller = named.name;
      if (const auto found = states.find(named.name); found != states.end())
        named.callback->load_state(state, found->second);
      if (const auto found = tensors.find(named.name); found != tensors.end())
        named.callback->load_tensors(state, found->second);
    } catch (...) {
      throw Error(fmt::format(
          "the checkpoint's state of {} cannot be used; was it written by another version? {}",
          named.title().text(), what_is_thrown()));
    }
}

}  // namespace millrace
