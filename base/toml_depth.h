// How deep a TOML document nests, checked before parsing, since the parser and its trees recurse.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace {

/// Levels of tables and arrays that a configuration may have; real ones have four.
constexpr std::size_t kMostLevels = 100;

/// Throws ConfigError naming the place where `toml` nests deeper than kMostLevels, by dotted keys,
/// headers, arrays and inline tables together. Does not recurse, and leaves other errors to the
/// parser.
void check_depth(std::string_view toml, const std::string& source);

}  // namespace millrace
