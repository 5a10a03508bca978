// Named sets of numeric switches that a detector's options start from, and what must hold between
// options.
#pragma once

#include <string>

#include "millrace/base/options.h"
#include "millrace/base/require.h"
#include "millrace/models/layers/idle_options.h"

namespace millrace {

/// Describes the option `style`.
inline void add_style(Options& o, std::string& style) {
  o.add("style", style, "named set of numeric switches that the other options start from",
        {"detectron2", "torchvision"});
}

/// The defaults of a detector's options in the style that the [model] table asks for; the struct's
/// own are detectron2's, `use_torchvision()` turns them into the other set. Throws ConfigError
/// where the table's values contradict each other, which `check(table)` tells by `require`, or have
/// no use, as `idle()` says.
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
  options.read(table, {"type", "weights"});
  asked.check(table);
  T unchanged = defaults;
  Options normal;
  unchanged.describe(normal);
  refuse_idle(table, asked.idle(), options, normal);
  return defaults;
}

}  // namespace millrace
