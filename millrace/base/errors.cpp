#include "millrace/base/errors.h"

#include <fmt/format.h>

#include <cstdlib>

namespace millrace {

std::string of_plugin(const std::string& plugin) { return plugin.empty() ? "" : " of " + plugin; }

std::string ComponentName::text() const {
  return fmt::format("{} '{}'{}", kind, name, of_plugin(plugin));
}

std::string sentence_of(std::string what) {
  if (std::getenv("TORCH_SHOW_CPP_STACKTRACES")) return what;
  what = what.substr(0, what.find("\nException raised from "));
  constexpr const char* kAdvice =
      " (of this operation or one before it: CUDA_LAUNCH_BLOCKING=1 shows which, scripts/gpu_tools "
      "memcheck where)";
  const auto cuda = what.find("CUDA error: ");
  if (cuda == what.npos || what.ends_with(kAdvice)) return what;
  return what.substr(0, what.find('\n', cuda)) + kAdvice;
}

std::string what_is_thrown() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return sentence_of(problem.what());
  } catch (...) {
    return "it threw something that is no std::exception";
  }
}

std::string failure_text(const ComponentName& who, std::string_view where,
                         const std::string& what) {
  return fmt::format("{} failed in {}: {}", who.text(), where, what);
}

void throw_blaming(const ComponentName& who, std::string_view where) {
  try {
    throw;
  } catch (const ConfigError& problem) {
    if (who.plugin.empty()) throw;
    throw ConfigError(who.text() + ": " + problem.what());
  } catch (...) {
    throw Error(failure_text(who, where, what_is_thrown()));
  }
}

}  // namespace millrace
