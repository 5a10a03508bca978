// Errors of components, plug-ins' above all: what one throws reaches the user with its name in
// front.
#pragma once

#include <string>
#include <string_view>

#include "millrace/base/errors.h"

namespace millrace {

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
