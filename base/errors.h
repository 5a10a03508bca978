// Errors for the user: each says what was wrong, where, and what to do, and begins with the name of
// the component, or plug-in, that threw it.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace {

/// Anything that ends a command (exit code 1). The user gets the message as it is.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Wrong usage or configuration (exit code 2): nothing has run yet.
struct ConfigError : Error {
  using Error::Error;
};

/// An input that cannot be used. A flow may skip it; any other exception ends the flow.
struct DataError : Error {
  DataError(std::string_view file, std::string_view why)
      : Error(std::string(file) + ": " + std::string(why)) {}
  explicit DataError(const std::string& what) : Error(what) {}
};

/// " of FILE" for a plug-in, "" for what is built in.
std::string of_plugin(const std::string& plugin);

/// A component in messages.
struct ComponentName {
  std::string kind;         // "callback"
  std::string name;         // as registered, or of its table
  std::string plugin = {};  // the shared object that brought it; empty: built in

  /// "callback 'hello' of FILE"
  std::string text() const;
};

/// An exception's message as a sentence: without the stack that libtorch adds (unless
/// TORCH_SHOW_CPP_STACKTRACES is set), and of an error of CUDA, which libtorch explains in six
/// lines, the first, with what to do.
std::string sentence_of(std::string what);

/// The message of the exception being handled, whatever its type, as a sentence. REQUIRES: in a
/// catch clause.
std::string what_is_thrown();

/// "WHO failed in WHERE: WHAT"
std::string failure_text(const ComponentName& who, std::string_view where, const std::string& what);

/// Rethrows the exception being handled as an Error with `failure_text`. A ConfigError, which says
/// where the configuration is wrong, stays one; for a plug-in, it gets the component's name in
/// front.
[[noreturn]] void throw_blaming(const ComponentName& who, std::string_view where);

/// Calls `work`; throw_blaming for what it throws.
template <class Work>
decltype(auto) blaming(const ComponentName& who, std::string_view where, Work&& work) {
  try {
    return work();
  } catch (...) {
    throw_blaming(who, where);
  }
}

}  // namespace millrace
