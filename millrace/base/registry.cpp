#include "millrace/base/registry.h"

#include <fmt/format.h>

#include "millrace/base/text.h"

namespace millrace {

std::string& registering_plugin() {
  static std::string plugin;
  return plugin;
}

void throw_unknown(const std::string& kind, const std::string& name,
                   const std::vector<std::string>& known, const Origin& where) {
  throw ConfigError(
      fmt::format("{}: unknown {} '{}'{}", where.text(), kind, name, suggestion(name, known)));
}

void throw_taken(const std::string& kind, const std::string& name, const std::string& first) {
  const auto where = [](const std::string& plugin) {
    return plugin.empty() ? "built in" : "by " + plugin;
  };
  throw Error(fmt::format("the {} '{}' is registered twice: {} and {}", kind, name, where(first),
                          where(registering_plugin())));
}

}  // namespace millrace
