// What must hold between options.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "millrace/base/config.h"
#include "millrace/base/errors.h"

namespace millrace {

/// Throws ConfigError where `holds` is false: the place of `key` in the table (the table's own
/// where it is not there), the key, and `why`. `key` may be a path, "rpn.nms_thresh".
inline void require(const Config& table, std::string_view key, bool holds, std::string_view why) {
  if (holds) return;
  const auto* value = table.find_path(key);
  throw ConfigError(
      fmt::format("{}: {} {}", (value ? value->origin : table.origin).text(), key, why));
}

}  // namespace millrace
