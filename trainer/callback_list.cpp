#include "millrace/trainer/callback_list.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "millrace/base/log.h"
#include "millrace/base/text.h"
#include "millrace/models/weights/safetensors.h"
#include "millrace/trainer/phase.h"
#include "millrace/trainer/train_state.h"

namespace millrace {
namespace {

/// Returns the callbacks' metrics that a condition reads; empty if it reads one that every step
/// has.
std::vector<std::string> watched_by(const std::optional<When>& when) {
  if (!when || !when->only_if()) return {};
  const auto& name = when->only_if()->name();
  const auto& always = Condition::step_metrics();
  return std::ranges::count(always, name) > 0 ? std::vector<std::string>() : std::vector{name};
}

bool has(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns,
                             [&](const auto& one) { return matches_wildcards(one, name); });
}

}  // namespace

Registry<CallbackFactory>& callbacks() {
  static Registry<CallbackFactory> registry("callback");
  return registry;
}

void CallbackList::add(std::string name, std::unique_ptr<Callback> callback,
                       std::optional<When> when, std::string plugin) {
  Named named{std::move(name), std::move(callback), std::move(when), std::move(plugin)};
  if (const auto* reader = named.as<ReadsMetrics>())
    named.watches =
        with_component_name(named.title(), "watches", [&] { return reader->watches(); });
  std::ranges::copy(watched_by(named.when), std::back_inserter(named.watches));
  named.publishes = named.ask_publishes();
  all_.push_back(std::move(named));
}

std::vector<std::string> CallbackList::Named::ask_publishes() const {
  const auto* publisher = as<PublishesMetrics>();
  if (!publisher) return {};
  return with_component_name(title(), "publishes", [&] { return publisher->publishes(); });
}

bool CallbackList::need_validation() const {
  return std::ranges::any_of(
      all_, [](const auto& named) { return named.template as<NeedsValidation>() != nullptr; });
}

void CallbackList::check_metrics() {
  std::map<std::string, const Named*> owners;
  for (auto& named : all_) {
    auto names = named.ask_publishes();
    for (auto& before : named.publishes)
      if (!has(names, before)) named.withdrawn.push_back(before);
    named.publishes = std::move(names);
    for (const auto& name : named.publishes) {
      if (is_training_metric(name))
        throw ConfigError(
            fmt::format("{0}: publishes() contains '{1}', a metric that the trainer itself "
                        "reports; choose another name, e.g. 'my/{1}'",
                        named.title().text(), name));
      if (name.find('*') != std::string::npos) continue;
      if (const auto [owner, is_new] = owners.emplace(name, &named);
          !is_new && owner->second != &named)
        throw ConfigError(
            fmt::format("callbacks.{} and callbacks.{} both publish '{}'; remove one of them",
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
      throw ConfigError(
          fmt::format("callbacks.{}: '{}' is never published: with this detector and this data, "
                      "callback '{}' does not publish it{}",
                      watcher.name, name, named.name, suggestion(name, published)));
  if (is_training_metric(name) || name.starts_with("loss_"))
    throw ConfigError(fmt::format(
        "callbacks.{}: '{}' is computed on a single training batch and cannot be watched; watch a "
        "metric that a callback publishes, e.g. 'val/loss' by [callbacks.validation_loss]",
        watcher.name, name));
  throw ConfigError(fmt::format("callbacks.{}: no callback of this run publishes '{}'{}",
                                watcher.name, name, suggestion(name, published)));
}

void CallbackList::warn_unpublished_metrics(const TrainState& state) const {
  for (const auto& named : all_)
    for (const auto& name : named.watches)
      if (!state.latest.contains(name))
        log_warning("callbacks.{} did nothing: '{}' was never published in this run", named.name,
                    name);
}

void CallbackList::call(const Named& named, const char* hook, TrainState& state,
                        const std::function<void()>& work) {
  if (!state.is_chief && named.callback->chief_only()) return;
  const Phase phase(state, named.name, hook);
  state.requests_.allowed = &named.publishes;
  try {
    work();
  } catch (const ConfigError& problem) {
    throw ConfigError(failure_text(named.title(), hook, problem.what()));
  } catch (...) {
    throw Error(failure_text(named.title(), hook, what_is_thrown()));
  }
}

void CallbackList::trigger(TrainState& state, bool at_start) {
  std::string due;          // 'x' or ' ' for each callback
  bool may_differ = false;  // true if ranks may disagree, because of a clock or a metric
  for (auto& named : all_) {
    auto& when = named.when;
    const bool is_due = when && (at_start ? when->is_due_at_start(state) : when->is_due(state));
    due += is_due ? 'x' : ' ';
    may_differ |= when && !when->is_clear() && !named.callback->chief_only();
  }
  if (may_differ) due = state.cluster->broadcast("due callbacks", due);
  DoAll all;
  for (std::size_t i = 0; i < all_.size(); ++i)
    if (due[i] == 'x')
      all.then([&] { call(all_[i], "trigger", state, [&] { all_[i].callback->trigger(state); }); });
  all.done();
}

std::map<std::string, std::string> CallbackList::save_states() const {
  std::map<std::string, std::string> states;
  for (const auto& named : all_)
    if (const auto* saver = named.as<SavesState>())
      with_component_name(named.title(), "save_state", [&] {
        if (const auto state = saver->save_state(); !state.is_null())
          states[named.name] = state.dump();
      });
  return states;
}

std::map<std::string, NamedTensors> CallbackList::save_tensors() const {
  std::map<std::string, NamedTensors> all;
  for (const auto& named : all_)
    if (const auto* saver = named.as<SavesTensors>())
      if (auto tensors = with_component_name(named.title(), "save_tensors",
                                             [&] { return saver->save_tensors(); });
          !tensors.empty())
        all[named.name] = std::move(tensors);
  return all;
}

NamedTensors CallbackList::tensors_of(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& named : all_) {
    const auto* saver = named.as<SavesTensors>();
    if (named.name == name) return saver ? saver->save_tensors() : NamedTensors();
    names.push_back(named.name);
  }
  throw ConfigError(fmt::format("this run has no callback '{}'{}", name, suggestion(name, names)));
}

void CallbackList::load(TrainState& state, const std::map<std::string, std::string>& states,
                        const std::map<std::string, NamedTensors>& tensors) {
  for (auto& named : all_) try {
      if (!state.is_chief && named.callback->chief_only()) continue;
      auto* with_state = named.as<SavesState>();
      if (const auto found = states.find(named.name); with_state && found != states.end())
        with_state->load_state(state, nlohmann::json::parse(found->second));
      auto* with_tensors = named.as<SavesTensors>();
      if (const auto found = tensors.find(named.name); with_tensors && found != tensors.end())
        with_tensors->load_tensors(state, found->second);
    } catch (...) {
      throw Error(fmt::format(
          "cannot load the checkpoint's state of {}; was it written by another version? {}",
          named.title().text(), what_is_thrown()));
    }
}

}  // namespace millrace
