#include "millrace/base/errors.h"

#include <fmt/format.h>

namespace millrace {

std::string of_plugin(const std::string& plugin) { return plugin.empty() ? "" : " of " + plugin; }

std::string ComponentName::text() const {
  return fmt::format("{} '{}'{}", kind, name, of_plugin(plugin));
}

std::string what_is_thrown() {
  try {
    throw;
  } catch (const std::exception& problem) {
    return problem.what();
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
