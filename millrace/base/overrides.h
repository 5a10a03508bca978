// One `--set a.b=value` on a tree that was not read from a file; see load_config.
#pragma once

#include <string>

#include "millrace/base/config.h"

namespace millrace {

/// Sets the value at a path of keys: TOML, or a bare word. Throws ConfigError.
void apply_override(Config& root, const std::string& text);

}  // namespace millrace
