// Errors shown to the user. Each message states what is wrong, where, and what to do, and begins
// with the name of the component or plug-in that threw it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace {

/// An error that ends a command (exit code 1). The message is shown unchanged.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An invalid command line or configuration (exit code 2), detected before anything has run.
struct ConfigError : Error {
  using Error::Error;
};

/// An unusable input. A flow may skip it; any other exception ends the flow.
struct DataError : Error {
  DataError(std::string_view file, std::string_view why)
      : Error(std::string(file) + ": " + std::string(why)) {}
  explicit DataError(const std::string& what) : Error(what) {}
};

/// Returns " of FILE" for a plug-in, "" for a built-in component.
std::string of_plugin(const std::string& plugin);

/// The name of a component in messages.
struct ComponentName {
  std::string kind;         // "callback"
  std::string name;         // the registered name, or the name of its table
  std::string plugin = {};  // shared object that registered it; empty = built in

  /// Returns "callback 'hello' of FILE".
  std::string text() const;
};

/// Returns an exception's message as a sentence. Removes libtorch's stack trace unless
/// TORCH_SHOW_CPP_STACKTRACES is set. Reduces a CUDA error, which libtorch explains in six lines,
/// to its first line and adds advice.
std::string sentence_of(std::string what);

/// Returns the message of the exception being handled, of any type, as a sentence. REQUIRES: called
/// in a catch clause.
std::string what_is_thrown();

/// Returns "WHO failed in WHERE: WHAT".
std::string failure_text(const ComponentName& who, std::string_view where, const std::string& what);

/// Rethrows the exception being handled as an Error with `failure_text`. A ConfigError stays a
/// ConfigError, since it already names the place in the configuration; for a plug-in, the
/// component's name is prepended.
[[noreturn]] void rethrow_with_component(const ComponentName& who, std::string_view where);

/// Calls `work` and applies rethrow_with_component to any exception.
template <class Work>
decltype(auto) with_component_name(const ComponentName& who, std::string_view where, Work&& work) {
  try {
    return work();
  } catch (...) {
    rethrow_with_component(who, where);
  }
}

}  // namespace millrace
