// Named sets of numeric switches that a detector's options start from, and what must hold between options.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "base/errors.h"
#include "base/options.h"

namespace millrace {

/// Describes the option `style`.
inline void add_style(Options& o, std::string& style) {
  o.add("style", style, "named set of numeric switches that the other options start from",
        {"detectron2", "torchvision"});
}

/// Throws ConfigError where `holds` is false: the place of `key` in the table (the table's own where it is not there),
/// the key, and `why`.
inline void require(const Config& table, std::string_view key, bool holds, std::string_view why) {
  if (holds) return;
  const auto* value = table.find(key);
  throw ConfigError(
      fmt::format("{}: {} {}", (value ? value->origin : table.origin).text(), key, why));
}

/// The defaults of a detector's options in the style that the [model] table asks for; the struct's own are
/// detectron2's, `use_torchvision()` turns them into the other set. Throws ConfigError where the table's values
/// contradict each other, which `check(table)` tells by `require`.
template <class T>
T defaults_in_style(const Config& table) {
  T defaults;
  const Config* style = table.is_table() ? table.find("style") : nullptr;
  const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
  if (name && *name == "torchvision") {
    defaults.style = *name;
    defaults.use_torchvision();
  }
  T asked = defaults;
  Options options;
  asked.describe(options);
  options.read(table, {"name", "weights"});
  asked.check(table);
  return defaults;
}

}  // namespace millrace
