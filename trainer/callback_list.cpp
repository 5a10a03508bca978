#include "trainer/callback_list.h"

#include <fmt/format.h>

#include <exception>

#include "base/errors.h"
#include "base/log.h"

namespace millrace {

void CallbackList::add(std::string name, std::unique_ptr<Callback> callback) {
  all_.push_back({std::move(name), std::move(callback)});
}

void CallbackList::each(const char* hook, bool is_chief,
                        const std::function<void(Callback&)>& call) {
  std::exception_ptr first;
  for (auto& [name, callback] : all_) {
    if (!is_chief && callback->chief_only()) continue;
    try {
      call(*callback);
    } catch (const std::exception& problem) {
      spdlog::error("callback '{}' failed in {}: {}", name, hook, problem.what());
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::map<std::string, std::string> CallbackList::save_states() const {
  std::map<std::string, std::string> states;
  for (const auto& [name, callback] : all_)
    if (auto state = callback->save_state(); !state.empty()) states[name] = std::move(state);
  return states;
}

void CallbackList::load_states(const std::map<std::string, std::string>& states) {
  for (auto& [name, callback] : all_) {
    const auto found = states.find(name);
    if (found == states.end()) continue;
    try {
      callback->load_state(found->second);
    } catch (const std::exception& problem) {
      throw Error(fmt::format(
          "the checkpoint's state of callback '{}' cannot be used; was it written by another "
          "version? {}",
          name, problem.what()));
    }
  }
}

}  // namespace millrace
