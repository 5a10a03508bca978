// The errors that a person gets to read. Each says what was wrong, where, and what to do; what a
// component throws, a plug-in's above all, reaches the user with its name in front.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace {

/// Anything that ends a command: its message is complete and goes to the user as it is (exit code
/// 1).
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Wrong usage or configuration: nothing has run yet (exit code 2).
struct ConfigError : Error {
  using Error::Error;
};

/// One input that cannot be used. A flow may skip it and count it; any other exception ends the
/// flow.
struct DataError : Error {
  DataError(std::string_view file, std::string_view why)
      : Error(std::string(file) + ": " + std::string(why)) {}
  explicit DataError(const std::string& what) : Error(what) {}
};

/// " of FILE" for what a plug-in brought, nothing for what is built in.
std::string of_plugin(const std::string& plugin);

/// A component as messages call it.
struct ComponentName {
  std::string kind;         // "callback"
  std::string name;         // as registered, or of its table
  std::string plugin = {};  // the shared object that brought it; empty: built in

  /// "callback 'hello' of FILE"
  std::string text() const;
};

/// What the exception says that is being handled, whatever its type. Call it in a catch clause.
std::string what_is_thrown();

/// "WHO failed in WHERE: WHAT"
std::string failure_text(const ComponentName& who, std::string_view where, const std::string& what);

/// Throws the exception that is being handled as an Error with `failure_text`. A ConfigError, which
/// says where the configuration is wrong, stays one; it begins with the component's name where a
/// plug-in brought that.
[[noreturn]] void throw_blaming(const ComponentName& who, std::string_view where);

/// What `work` gives; throw_blaming for what it throws.
template <class Work>
decltype(auto) blaming(const ComponentName& who, std::string_view where, Work&& work) {
  try {
    return work();
  } catch (...) {
    throw_blaming(who, where);
  }
}

}  // namespace millrace
