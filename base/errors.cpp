#include "millrace/base/errors.h"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "millrace/base/text.h"

namespace millrace {

namespace {

/// Shortens a message of libtorch's allocator, "... you tried to allocate 3211264 bytes. ...", to
/// one sentence.
std::string out_of_memory_sentence(const std::string& what) {
  constexpr std::string_view kBefore = "tried to allocate ";
  const auto at = what.rfind(kBefore);
  const double bytes =
      at == what.npos ? 0 : std::strtod(what.c_str() + at + kBefore.size(), nullptr);
  return bytes > 0 ? fmt::format("out of memory: cannot allocate {}", byte_text(bytes))
                   : std::string("out of memory");
}

}  // namespace

std::string of_plugin(const std::string& plugin) { return plugin.empty() ? "" : " of " + plugin; }

std::string ComponentName::text() const {
  return fmt::format("{} '{}'{}", kind, name, of_plugin(plugin));
}

std::string sentence_of(std::string what) {
  if (what == std::bad_alloc().what()) return "out of memory";
  constexpr std::string_view kJson = "[json.exception.";
  for (auto at = what.find(kJson); at != what.npos; at = what.find(kJson, at)) {
    const auto end = what.find("] ", at);
    if (end == what.npos) break;  // text that only looks like a tag
    what.erase(at, end + 2 - at);
  }
  if (std::getenv("TORCH_SHOW_CPP_STACKTRACES")) return what;
  for (const auto* stack : {"\nException raised from ", "\nframe #0: "})
    what = what.substr(0, what.find(stack));
  if (const auto at = what.find("[enforce fail at alloc_cpu.cpp"); at != what.npos)
    return what.substr(0, at) + out_of_memory_sentence(what.substr(at));
  constexpr const char* kAdvice =
      " (in this operation or an earlier one: run with CUDA_LAUNCH_BLOCKING=1 to see which, with "
      "scripts/gpu_tools memcheck to see the line)";
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
    return "threw an object that is not a std::exception";
  }
}

std::string failure_text(const ComponentName& who, std::string_view where,
                         const std::string& what) {
  return fmt::format("{} failed in {}: {}", who.text(), where, what);
}

void rethrow_with_component(const ComponentName& who, std::string_view where) {
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
