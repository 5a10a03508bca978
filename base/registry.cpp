#include "millrace/base/registry.h"

#include <fmt/format.h>

#include <filesystem>

#include "millrace/base/own_folders.h"
#include "millrace/base/text.h"

namespace millrace {

std::string& registering_plugin() {
  static std::string plugin;
  return plugin;
}

void throw_unknown(const std::string& kind, const std::string& name,
                   const std::vector<std::string>& known, const Origin& where) {
  const auto plugin = name + ".so";
  std::error_code absent;
  const auto hint =
      std::filesystem::exists(own_library_folder() / "plugins" / plugin, absent)
          ? fmt::format("; the plug-in of this name provides it: plugins = [\"{}\"]", plugin)
          : suggestion(name, known);
  throw ConfigError(fmt::format("{}: unknown {} '{}'{}", where.text(), kind, name, hint));
}

void throw_taken(const std::string& kind, const std::string& name, const std::string& first) {
  const auto where = [](const std::string& plugin) {
    return plugin.empty() ? "built in" : "by " + plugin;
  };
  throw Error(fmt::format("the {} '{}' is registered twice: {} and {}", kind, name, where(first),
                          where(registering_plugin())));
}

std::string component_type(const Config& table, const std::string& kind) {
  const auto* type = table.is_table() ? table.find("type") : nullptr;
  if (!type || !std::holds_alternative<std::string>(type->data))
    throw ConfigError(table.origin.text() + ": a " + kind +
                      " must be a table with its name in `type = \"...\"`");
  return std::get<std::string>(type->data);
}

}  // namespace millrace
