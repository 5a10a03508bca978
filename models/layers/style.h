// Named sets of numeric switches that options start from.
#pragma once

#include <string>

#include "base/options.h"

namespace millrace {

/// Describes the option `style`.
inline void add_style(Options& o, std::string& style) {
  o.add("style", style, "named set of numeric switches that the other options start from",
        {"detectron2", "torchvision"});
}

/// Whether a [model] table asks for torchvision's numbers; defaults are detectron2's.
inline bool wants_torchvision(const Config& table) {
  const Config* style = table.is_table() ? table.find("style") : nullptr;
  const auto* name = style ? std::get_if<std::string>(&style->data) : nullptr;
  return name && *name == "torchvision";
}

}  // namespace millrace
